"""A report as a table for a terminal; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.render.words import duration, label, moment, percent, share_of, short
from mldiagnostics.text.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics.goodput.report import GoodputReport, RecoveryPhases, TimeBreakdown


NARROWEST = 80
NO_START = "the log has no job start: the account begins with its first event"
MOST_ROWS = 12
"""Number of attempts and of disruptions that are shown, the last ones."""

_PARTS = "▏▎▍▌▋▊▉"
_BOLD, _GREEN, _RED, _PLAIN = "\033[1m", "\033[32m", "\033[31m", "\033[0m"


def table(report: GoodputReport, *, width: int = 80, colour: bool = False) -> str:
    """Return the report in lines of at most `width` characters.

    Lines have 80 characters at least; a smaller `width` only omits the bars.
    """
    bars, width = width >= NARROWEST, max(width, NARROWEST)
    blocks = [
        _head(report, width, colour, bars=bars),
        _partition(report.cumulative, width, colour, bars=bars),
        _windows(report, width),
        _attempts(report, width),
        _disruptions(report, width),
        _reliability(report, width),
        _counted("corrected in the log", report.corrected),
        _counted("ignored in the log", report.ignored),
    ]
    lines = "\n\n".join("\n".join(_titled(block, colour)) for block in blocks if block)
    return lines + "\n"


def _titled(block: Sequence[str], colour: bool) -> Iterator[str]:
    title, *rest = block
    yield f"{_BOLD}{title}{_PLAIN}" if colour else title
    yield from rest


def _head(report: GoodputReport, width: int, colour: bool, *, bars: bool) -> list[str]:
    whole = report.cumulative
    step = ", no step" if whole.last_step is None else f", step {whole.last_step}"
    period = f"{moment(whole.start)} to {moment(whole.end)} UTC, {duration(whole.end - whole.start)}, ended"
    if report.stopped:
        period = (
            f"{moment(whole.start)} to {moment(whole.end)} UTC, {duration(whole.end - whole.start)}, no end recorded"
        )
    elif report.ended is None:
        period = f"since {moment(whole.start)} UTC, {duration(whole.end - whole.start)}, as of {moment(report.now)}"
    share = f"goodput {share_of(whole.goodput, 1)}  "
    others = [short(run) for run in report.runs if run != report.run]
    notes = [] if report.start_told else [NO_START]
    notes += [_cut(note, width)] if (note := excluded(report)) else []
    notes += [_cut(f"other runs of this name: {', '.join(others)}", width)] if others else []
    notes += [_painted(_cut(warning, width), _RED, colour)] if (warning := alarm(report)) else []
    drawn = _painted(bar(whole.goodput or 0.0, width - len(share), rest="░"), _GREEN, colour) if bars else ""
    return [
        _title(report.name, run_of(report), width),
        _cut(period + step, width),
        *notes,
        "",
        (share + drawn).rstrip(),
    ]


def run_of(report: GoodputReport) -> str:
    """Return the run's name; empty if the name of the log ends with it."""
    return "" if report.name.endswith(report.run) else f"run {short(report.run)}"


def excluded(report: GoodputReport) -> str:
    """Return a note about excluded time; empty without any."""
    left_out_s = report.cumulative.excluded_s
    if not left_out_s:
        return ""
    return f"{duration(left_out_s)} excluded; shares are of the remaining {duration(report.cumulative.elapsed_s)}"


def alarm(report: GoodputReport) -> str:
    """Return a problem that needs attention now; empty without one."""
    if report.stopped:
        return f"NOT RUNNING: {report.stopped}"
    if report.failure:
        return f"FAILED: {report.failure}"
    if (hang := report.hang).suspected:
        return (
            f"HANG SUSPECTED: step {hang.step} for {duration(hang.age_s)}, expected at most {duration(hang.allowed_s)}"
        )
    last = report.disruptions[-1] if report.disruptions and report.ended is None else None
    if last is None or last.resumed is not None:
        return ""
    starts = f", {last.starts} starts" if last.starts > 1 else ""
    since = moment(last.lost, day=False)
    return f"NOT BACK for {duration(last.recovery.total_s)}{starts}: no step since {since} ({last.cause})"


def _title(name: str, run: str, width: int) -> str:
    """Return the log's name, or its end if it is long: names differ there."""
    room = width - len(run) - 2
    shown = name if len(name) <= room else "…" + name[1 - room :]
    return "  ".join(part for part in (shown, run) if part) or "goodput"


def _partition(breakdown: TimeBreakdown, width: int, colour: bool, *, bars: bool) -> list[str]:
    name_width, bar_width = 32, width - 32 - 14 - 9 - 3 if bars else 0
    lines = [f"{'where the time went':{name_width}}{'time':>14}{'%':>9}"]
    rows = [("productive", breakdown.productive_s, _GREEN)]
    rows += [(label(bucket), seconds, _RED) for bucket, seconds in breakdown.unproductive_s.items()]
    for name, seconds, paint in rows:
        share = seconds / breakdown.elapsed_s if breakdown.elapsed_s else 0.0
        drawn = _painted(bar(share, bar_width).rstrip(), paint, colour)
        lines.append(
            f"{_cut('  ' + name, name_width):{name_width}}{duration(seconds):>14}{percent(share):>9}   {drawn}".rstrip()
        )
    lines.append(f"{'  elapsed':{name_width}}{duration(breakdown.elapsed_s):>14}{'100.00':>9}")
    if breakdown.excluded_s:
        lines.append(f"{'  excluded':{name_width}}{duration(breakdown.excluded_s):>14}")
    if breakdown.data_loading_async_s:
        overlay_row = f"{'  ' + label('DATA_LOADING_ASYNC'):{name_width}}{duration(breakdown.data_loading_async_s):>14}"
        lines.append(f"{overlay_row}{'overlay':>9}")
    return lines


def _windows(report: GoodputReport, width: int) -> list[str]:
    named = [("since resume", report.since_resume)] if report.disruptions else []
    named += [(f"last {duration(window.window_s)}", window) for window in report.windows]
    if not named:
        return []
    lines = [f"{'windows':24}{'elapsed':>14}{'goodput':>9}  mostly lost to"]
    for name, breakdown in named:
        most = next(iter(breakdown.unproductive_s), None)
        numbers = f"{duration(breakdown.elapsed_s):>14}{percent(breakdown.goodput):>9}"
        lines.append(_cut(f"{'  ' + name:24}{numbers}  {label(most) if most else '-'}", width))
    return lines


def _attempts(report: GoodputReport, width: int) -> list[str]:
    if len(report.attempts) < 2:
        return []
    last = "end" if report.ended is not None else "not running" if report.stopped else "running"
    lines = [f"{'attempts':10}{'steps':>18}{'elapsed':>14}{'goodput':>9}  ended by"]
    for attempt in report.attempts[-MOST_ROWS:]:
        steps = "none" if attempt.first_step is None else f"{attempt.first_step}-{attempt.last_step}"
        elapsed, share = duration(attempt.stretch.elapsed_s), percent(attempt.stretch.goodput)
        row = f"{f'  {attempt.number}':10}{steps:>18}{elapsed:>14}{share:>9}  {attempt.ended_by or last}"
        lines.append(_cut(row, width))
    return lines + _more(len(report.attempts), "attempts")


def _disruptions(report: GoodputReport, width: int) -> list[str]:
    if not report.disruptions:
        return []
    lines = [f"{'disruptions':25}{'cause':16}{'steps lost':>10}{'wasted':>14}{'recovery':>14}"]
    lines += [
        _cut(
            f"  {moment(figures.lost):23}{_cut(figures.cause, 15):16}{figures.steps_lost:>10}"
            f"{duration(figures.wasted_s):>14}{duration(figures.recovery.total_s):>14}",
            width,
        )
        for figures in report.disruptions[-MOST_ROWS:]
    ]
    return lines + _more(len(report.disruptions), "disruptions")


def _more(count: int, what: str) -> list[str]:
    return [f"  … and {count - MOST_ROWS} earlier {what}"] if count > MOST_ROWS else []


def _reliability(report: GoodputReport, width: int) -> list[str]:
    return ["reliability and cost", *(_cut(f"  {name:22}{text}", width) for name, text in figures(report))]


def figures(report: GoodputReport) -> Iterator[tuple[str, str]]:
    """Yield the figures of reliability and cost as name and text."""
    yield from _failure_figures(report)
    yield "effective time (ETTR)", f"{share_of(report.ettr)}"
    if queueing := report.queueing:
        available = share_of(queueing.scheduling_goodput)
        yield "  with queueing", f"{share_of(queueing.ettr)}, queued {duration(queueing.queued_s)}"
        yield "  scheduling goodput", available
    yield from _checkpoint_figures(report)
    yield "waiting for data", f"{share_of(report.cumulative.input_bound)} of the time"
    if steps := report.steps.count:
        done = steps if report.steps.done is None else report.steps.done
        yield "steps", f"{done:,} done, ideal {duration(report.steps.ideal_s)}"
        usual = f"median {duration(report.steps.median_s)}, p99 {duration(report.steps.p99_s)}"
        yield "  time of a step", f"{usual}, of {counted(steps, 'step')} that another follows"
    if report.stepping_slice_efficiency is not None:
        stepping, available = share_of(report.stepping_slice_efficiency), share_of(report.available_slice_efficiency)
        yield "slices", f"{stepping} stepping, {available} available"


def _failure_figures(report: GoodputReport) -> Iterator[tuple[str, str]]:
    failures, operating = report.failures, duration(report.failures.operating_s)
    if failures.count:
        yield (
            "time to failure",
            f"{duration(failures.mttf_s)} (MTTF; {counted(failures.count, 'failure')} in {operating})",
        )
    else:
        yield "time to failure", f"failed after {operating}" if report.failure else f"no failure in {operating}"
    if report.start_up_s:
        stages = [f"{stage} {duration(seconds)}" for stage, seconds in report.start_up_s.items() if seconds]
        yield "time to start", ", ".join(stages) or duration(0.0)
    if len(failures.by_cause) > 1:
        yield "  causes", ", ".join(f"{count:,} {cause}" for cause, count in failures.by_cause.items())
    if mean := failures.recovery:
        yield "time to recover", f"{duration(mean.total_s)} (MTTR)"
        shown = [f"{name} {duration(seconds)}" for name, seconds in phases(mean) if seconds]
        for first in range(0, len(shown), 3):
            yield ("" if first else "  by phase"), ", ".join(shown[first : first + 3])
    if report.disruptions:
        hours = report.lost_work.device_hours
        devices = "" if hours is None else f", {hours:,.1f} device-hours"
        yield "lost work", duration(report.lost_work.total_s) + devices


def phases(recovery: RecoveryPhases) -> list[tuple[str, float]]:
    """Return the phases of a recovery in order, with their seconds."""
    return [
        ("detect", recovery.detect_s),
        ("reschedule", recovery.reschedule_s),
        ("init", recovery.init_s),
        ("restore", recovery.restore_s),
        ("first step", recovery.first_step_s),
        ("rest", recovery.rest_s),
    ]


def _checkpoint_figures(report: GoodputReport) -> Iterator[tuple[str, str]]:
    checkpoints = report.checkpoints
    if not checkpoints.saves:
        return
    every = f", every {duration(checkpoints.interval_s)}" if checkpoints.interval_s else ""
    yield "checkpoints", f"{counted(checkpoints.saves, 'save')} of {duration(checkpoints.cost_s)}{every}"
    if checkpoints.daly_s is not None:
        least, now = _overhead(checkpoints.best_overhead), _overhead(checkpoints.overhead)
        compared = "" if checkpoints.overhead is None else f" ({least} of the time lost, now {now})"
        yield "  best interval", f"{duration(checkpoints.daly_s)}{compared}"


def _overhead(overhead: float | None) -> str:
    return ">100 %" if overhead is not None and overhead > 1 else share_of(overhead, 1)


def _counted(title: str, counts: Mapping[str, int]) -> list[str]:
    return [title, *(f"  {count:>9,}  {reason}" for reason, count in counts.items())] if counts else []


def bar(share: float, width: int, *, rest: str = " ") -> str:
    """Return a bar of `width` characters, filled to `share` in steps of 1/8 character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (_PARTS[part - 1] if part else "")
    return drawn + rest * (width - len(drawn))


def _painted(text: str, paint: str, colour: bool) -> str:
    return f"{paint}{text}{_PLAIN}" if colour and text else text


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
