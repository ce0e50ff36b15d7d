"""`mldiag profiles get` and `compare`: summaries of sessions by XProf."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.render.words import duration, percent
from mldiagnostics.layout import TRACE_SUFFIX

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import is_terminal, show, show_document, terminal_width
from mldiagnostics_cli.profiles.converter import converted
from mldiagnostics_cli.profiles.references import find_session, opened
from mldiagnostics_cli.table import TableColumn, table
from mldiagnostics_cli.values import DASH, moment, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.runs import SessionRow

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.profiles.summary import OperationTime, ProfileSummary
    from mldiagnostics_cli.runs.source import RunSource

__all__ = ["compare_sessions", "show_session"]


def show_session(choice: SourceChoice, reference: str, output: OutputFormat, *, top: int) -> None:
    """Print the summary of a session, with its `top` operations.

    Raises:
        ConfigurationError: There is no such session, or XProf is missing or cannot read it.
        StoreError: The traces cannot be read.
    """
    with opened(choice, [reference]) as source:
        session = find_session(source, reference)
        if output is OutputFormat.NAME:
            show(session.url)
            return
        session, summary = _converted(source, session)
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(_document(session, summary, top), output)
    else:
        show("\n".join(_page(session, summary, top)))


def compare_sessions(choice: SourceChoice, references: Sequence[str], output: OutputFormat, *, top: int) -> None:
    """Print two sessions side by side: the steps, and the `top` operations whose time differs most.

    Raises:
        ConfigurationError: There is no such session, or XProf is missing or cannot read one.
        StoreError: The traces cannot be read.
    """
    with opened(choice, references) as source:
        found = [find_session(source, reference) for reference in references]
        sessions, (before, after) = zip(*(_converted(source, session) for session in found), strict=True)
    changes = _changes(before, after)[:top]
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        document = {
            "sessions": [
                _document(session, summary, top) for session, summary in zip(sessions, (before, after), strict=True)
            ],
            "operations": [{"name": name, "seconds": list(seconds)} for name, seconds in changes],
        }
        show_document(document, output)
        return
    lines = list(_figures(before, after))
    lines += [(f"op {name}", _time(first), _time(second)) for name, (first, second) in changes]
    titles = [session.name for session in sessions]
    columns: list[TableColumn[tuple[str, str, str]]] = [
        TableColumn("", lambda line: line[0]),
        TableColumn(titles[0], lambda line: line[1], is_number=True),
        TableColumn(titles[1], lambda line: line[2], is_number=True),
    ]
    show("\n".join(table(lines, columns, width=terminal_width() if is_terminal() else None)))


def _converted(source: RunSource, session: SessionRow) -> tuple[SessionRow, ProfileSummary]:
    """Return a session with its files, and its summary."""
    with source.fetched_profile(session) as row:
        summary = converted(row)
    if session.files:
        return session, summary
    files = tuple(replace(file, url=f"{session.url}/{file.host}{TRACE_SUFFIX}") for file in row.files)
    return replace(row, url=session.url, files=files), summary


def _page(session: SessionRow, summary: ProfileSummary, top: int) -> Iterator[str]:
    yield f"session     {session.name} ({session.kind})"
    yield f"hosts       {len(session.hosts)}: {', '.join(session.hosts)}"
    yield f"size        {size(session.bytes)}, stored {moment(session.t)}"
    yield f"url         {session.url}"
    yield f"device      {summary.device or DASH}"
    if summary.steps:
        times = f"{_time(summary.fastest_step_s)} to {_time(summary.slowest_step_s)}"
        yield f"steps       {summary.steps}, mean {_time(summary.step_time_s)} ({times})"
        parts = sorted(summary.step_parts.items(), key=lambda part: -part[1])
        yield f"step time   {', '.join(f'{name} {percent(share)} %' for name, share in parts) or DASH}"
        yield f"input       {percent(summary.input_share or 0.0)} % of the steps"
    else:
        yield "steps       none recorded; mark them with jax.profiler.StepTraceAnnotation"
    yield f"memory      {'peak ' + size(summary.peak_memory_bytes) if summary.peak_memory_bytes is not None else DASH}"
    if summary.bottleneck and summary.steps:
        yield f"XProf       {summary.bottleneck}"
    if summary.operations:
        yield ""
        width = terminal_width() if is_terminal() else None
        yield from table(summary.operations[:top], _OPERATION_COLUMNS, width=width)


def _figures(before: ProfileSummary, after: ProfileSummary) -> Iterator[tuple[str, str, str]]:
    yield "steps", str(before.steps), str(after.steps)
    yield "step time", _time(before.step_time_s), _time(after.step_time_s)
    yield "slowest step", _time(before.slowest_step_s), _time(after.slowest_step_s)
    for part in sorted(before.step_parts.keys() | after.step_parts.keys()):
        yield f"{part} %", percent(before.step_parts.get(part, 0.0)), percent(after.step_parts.get(part, 0.0))
    yield "peak memory", size(before.peak_memory_bytes), size(after.peak_memory_bytes)


def _changes(before: ProfileSummary, after: ProfileSummary) -> list[tuple[str, tuple[float | None, float | None]]]:
    """Return the time of each operation in both sessions, per step where both have steps; the largest change first."""
    per = [summary.steps if before.steps and after.steps else 1 for summary in (before, after)]
    times: list[dict[str, float]] = [{}, {}]
    for each, summary, steps in zip(times, (before, after), per, strict=True):
        for operation in summary.operations:
            each[operation.name] = each.get(operation.name, 0.0) + operation.seconds / steps
    pairs = {name: (times[0].get(name), times[1].get(name)) for name in times[0] | times[1]}
    return sorted(pairs.items(), key=lambda pair: (-abs((pair[1][1] or 0.0) - (pair[1][0] or 0.0)), pair[0]))


def _document(session: SessionRow, summary: ProfileSummary, top: int) -> dict[str, Any]:
    document = session.to_json() | {"summary": summary.to_json()}
    document["summary"]["operations"] = document["summary"]["operations"][:top]
    return document


def _time(seconds: float | None) -> str:
    return DASH if seconds is None else duration(seconds)


_OPERATION_COLUMNS: list[TableColumn[OperationTime]] = [
    TableColumn("OPERATION", lambda each: each.name),
    TableColumn("CATEGORY", lambda each: each.category or DASH),
    TableColumn("COUNT", lambda each: str(each.occurrences), is_number=True),
    TableColumn("TIME", lambda each: _time(each.seconds), is_number=True),
    TableColumn("SHARE %", lambda each: percent(each.share), is_number=True),
]
