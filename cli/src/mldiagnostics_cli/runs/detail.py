"""`mldiag runs get`: one run with its attempts, hosts, profiles and curves."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.render.words import duration
from mldiagnostics.runs import configs
from mldiagnostics.runs.row_values import FieldReader
from mldiagnostics.runs.texts import texts
from mldiagnostics.runs.waiting import waiting_files
from mldiagnostics.text.counts import counted
from mldiagnostics.text.terminal import printable

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import has_colour, is_terminal, show, show_document, terminal_width
from mldiagnostics_cli.runs.curves import curve_lines, requested_curves
from mldiagnostics_cli.runs.listing import elapsed_s, goodput_text, phase_text
from mldiagnostics_cli.table import PHASE_COLOURS, TableColumn, painted, table
from mldiagnostics_cli.values import DASH, age, moment, number, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mldiagnostics.runs import AttemptRow, MetricSeries, RankRow, RunRow, SessionRow
    from mldiagnostics.runs.texts import RecordedTexts, TextRow

    from mldiagnostics_cli.runs.source import RunSource


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailQuery:
    """Parts of a run to show besides its row."""

    with_hosts: bool = False
    with_texts: bool = False
    metrics: tuple[str, ...] = ()
    rank: int = 0


@dataclass(frozen=True, slots=True)
class _RunDetail:
    """A run with its attempts, profiles, hosts and curves."""

    row: RunRow
    attempts: list[AttemptRow]
    profiles: list[SessionRow]
    hosts: list[RankRow] | None
    curves: list[MetricSeries]
    last_metrics: Mapping[str, float | None]
    """Requested metrics whose curves cannot be read; None for values that are not known."""
    texts: RecordedTexts | None

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON; parts that were not requested are left out."""
        document = self.row.to_json() | {
            "configs": configs(self.row),
            "attempts": [attempt.to_json() for attempt in self.attempts],
            "profiles": [profile.to_json() for profile in self.profiles],
        }
        if self.hosts is not None:
            document["ranks"] = [host.to_json() for host in self.hosts]
        if self.texts is not None:
            document["texts"] = self.texts.to_json()
        if self.curves:
            document["series"] = [curve.to_json() for curve in self.curves]
        if self.last_metrics:
            document["lastMetrics"] = dict(self.last_metrics)
        return document


def show_run(source: RunSource, run: str, query: DetailQuery, output: OutputFormat) -> None:
    """Print one run."""
    row = source.find(run)
    if output is OutputFormat.NAME:
        show(row.run_id)
        return
    [row] = source.accounted([row])
    with_hosts = query.with_hosts or output is OutputFormat.WIDE
    curves = requested_curves(source, row, query.metrics, rank=query.rank)
    known = (source.last_metrics(row) or {}) if curves is None else {}
    detail = _RunDetail(
        row,
        source.attempts(row),
        source.sessions(row),
        source.hosts(row) if with_hosts else None,
        curves or [],
        {name: known.get(name) for name in query.metrics} if curves is None else {},
        _texts(source, row) if query.with_texts else None,
    )
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(detail.to_json(), output)
    else:
        show("\n".join(_page(detail, time.time())))


def _texts(source: RunSource, row: RunRow) -> RecordedTexts:
    with source.fetched(row) as readable:
        return texts(readable)


def _page(detail: _RunDetail, now: float) -> Iterator[str]:
    width = terminal_width()
    for name, text in _facts(detail.row, now):
        yield f"{name:12}{printable(text)}".rstrip() if name != "phase" else f"{name:12}{_phase(text)}"
    limit = width if is_terminal() else None
    if len(detail.attempts) > 1 or any(attempt.cause for attempt in detail.attempts):
        yield from ("", *table(detail.attempts, _ATTEMPTS, width=limit, colour=has_colour()))
    if detail.profiles:
        yield from ("", *table(detail.profiles, _PROFILES, width=limit))
    if detail.hosts is not None:
        yield from ("", *table(detail.hosts, _hosts(now), width=limit, colour=has_colour()))
    if detail.texts is not None:
        newest = detail.texts.newest()
        yield from ("", f"{len(newest)} of {detail.texts.total} recorded texts")
        yield from table(newest, _TEXTS, width=limit)
    for curve in detail.curves:
        yield from ("", *curve_lines(curve, width=width))
    if detail.last_metrics:
        yield ""
    for name, value in detail.last_metrics.items():
        yield printable(f"last {name}: {number(value)}")


def _phase(text: str) -> str:
    return painted(printable(text), PHASE_COLOURS) if has_colour() else printable(text)


def _facts(row: RunRow, now: float) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the facts that are known."""
    facts = {
        "name": row.name or DASH,
        "run": row.run_id,
        "phase": phase_text(row),
        "message": row.message,
        "group": row.run_group,
        "tags": ", ".join(row.tags),
        "notes": row.notes,
        "workload": _workload_text(row),
        "command": _command_text(row),
        "step": _step_text(row),
        "ranks": _ranks_text(row),
        "created" if row.phase == "Pending" else "started": ""
        if row.created is None
        else f"{moment(row.created)}, {age(now - row.created)} ago",
        "ended": "" if row.ended is None else f"{moment(row.ended)}, after {age(elapsed_s(row, now))}",
        "goodput": _goodput_text(row, now),
        "dropped": counts_text(row.drops),
        "warnings": counts_text(row.complaints),
        "waiting": waiting_files(row) if row.document else "",
        "files": row.directory,
        "recorded in": row.reported_storage if row.reported_storage != row.storage else "",
        "page": row.url or "",
    }
    return ((name, text) for name, text in facts.items() if text)


def counts_text(counts: Mapping[str, int]) -> str:
    """Return numbers by name, the largest first."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{count} {name}" for name, count in ordered)


def _workload_text(row: RunRow) -> str:
    if not row.workload:
        return ""
    place = "/".join(filter(None, (row.namespace, str(row.workload.get("name") or ""))))
    return f"{row.workload.get('kind') or 'workload'} {place}"


def _command_text(row: RunRow) -> str:
    software = FieldReader(row.configs).part("software")
    return f"{software.text('command')} {software.text('arguments')}".strip()


def _step_text(row: RunRow) -> str:
    if row.step is None:
        return ""
    return f"{row.step}" + ("" if row.step_time_s is None else f", {duration(row.step_time_s)} each")


def _goodput_text(row: RunRow, now: float) -> str:
    if row.goodput is None:
        return ""
    as_of = row.goodput_as_of
    return goodput_text(row) + ("" if as_of is None else f", as of {moment(as_of)}, {age(now - as_of)} ago")


def _ranks_text(row: RunRow) -> str:
    hosts = "" if row.hosts is None else counted(row.hosts, "host")
    if row.world_size is None:
        return hosts
    return f"{row.world_size}" + (f" on {hosts}" if hosts else "")


def _lasted(attempt: AttemptRow) -> str:
    if attempt.started is None or attempt.ended is None:
        return DASH
    return duration(attempt.ended - attempt.started)


def _hosts(now: float) -> list[TableColumn[RankRow]]:
    return [
        TableColumn("RANK", lambda host: str(host.rank), is_number=True),
        TableColumn("HOST", lambda host: host.host or DASH),
        TableColumn("NODE", lambda host: host.node or DASH, is_optional=True),
        TableColumn("PHASE", lambda host: f"{host.phase} ({host.reason})" if host.reason else host.phase,
                    colours=PHASE_COLOURS),
        TableColumn("STEP", lambda host: DASH if host.step is None else str(host.step), is_number=True,
                    is_optional=True),
        TableColumn("STEP-TIME", lambda host: duration(host.step_time_s), is_number=True, is_optional=True),
        TableColumn("LAST-SEEN", lambda host: DASH if host.heartbeat is None else age(now - host.heartbeat),
                    is_number=True, is_optional=True),
    ]  # fmt: skip


_ATTEMPTS: list[TableColumn[AttemptRow]] = [
    TableColumn("ATTEMPT", lambda attempt: DASH if attempt.attempt is None else str(attempt.attempt), is_number=True),
    TableColumn("STARTED", lambda attempt: moment(attempt.started), is_whole=True),
    TableColumn("LASTED", _lasted, is_number=True),
    TableColumn("START-UP", lambda attempt: duration(attempt.start_up), is_number=True, is_optional=True),
    TableColumn("PHASE", lambda attempt: attempt.phase, colours=PHASE_COLOURS),
    TableColumn(
        "CAUSE",
        lambda attempt: ": ".join(filter(None, (attempt.cause, attempt.cause_message))) or DASH,
        is_optional=True,
    ),
    TableColumn("REASON", lambda attempt: ": ".join(filter(None, (attempt.reason, attempt.message))) or DASH),
]

_TEXTS: list[TableColumn[TextRow]] = [
    TableColumn("TIME", lambda row: moment(row.t)),
    TableColumn("RANK", lambda row: str(row.rank), is_number=True),
    TableColumn("STEP", lambda row: DASH if row.step is None else str(row.step), is_number=True),
    TableColumn("NAME", lambda row: row.name),
    TableColumn("TEXT", lambda row: row.text, is_whole=True),
]

_PROFILES: list[TableColumn[SessionRow]] = [
    TableColumn("PROFILE", lambda profile: profile.name),
    TableColumn("KIND", lambda profile: profile.kind),
    TableColumn(
        "HOSTS", lambda profile: str(len(profile.files)) if profile.files else DASH, is_number=True, is_optional=True
    ),
    TableColumn(
        "SIZE", lambda profile: size(profile.bytes) if profile.files else DASH, is_number=True, is_optional=True
    ),
    TableColumn("TIME", lambda profile: moment(profile.t)),
]
