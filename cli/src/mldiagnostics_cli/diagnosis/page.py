"""Findings and comparisons as lines of text; pure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from mldiagnostics.goodput.render.words import duration, percent
from mldiagnostics.text.counts import counted
from mldiagnostics.text.terminal import printable

from mldiagnostics_cli.table import TableColumn, painted, table
from mldiagnostics_cli.values import DASH, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mldiagnostics.findings import Diagnosis, Figure, Finding, FindingHost
    from mldiagnostics_diagnosis.comparison import Comparison, OperationChange


_INDENT: Final = 10
_COLOURS: Final[Mapping[str, str]] = {"critical": "\x1b[31m", "warning": "\x1b[33m", "info": "\x1b[32m"}
_NAMED: Final = 4
_PLAIN_WIDTH: Final = 120


def diagnosis_lines(diagnosis: Diagnosis, *, width: int | None, colour: bool) -> Iterator[str]:
    """Yield a session and all findings about it, the most expensive one first.

    Args:
        diagnosis: The findings.
        width: Columns of the terminal; None without one.
        colour: Whether severities have colours.
    """
    steps = counted(diagnosis.steps, "step") + ("" if diagnosis.step_s is None else f" of {duration(diagnosis.step_s)}")
    hosts = counted(diagnosis.hosts, "host")
    yield f"{'session':{_INDENT}}{printable(diagnosis.session)}: {hosts}, {steps}"
    for finding in diagnosis.findings:
        yield ""
        yield from finding_lines(finding, width=width, colour=colour)


def finding_lines(finding: Finding, *, width: int | None, colour: bool) -> Iterator[str]:
    """Yield one finding: sentence, code, cost, numbers and the next step."""
    severity = f"{finding.severity:{_INDENT}}"
    first, *rest = _wrapped(finding.message, width)
    yield (painted(severity, _COLOURS) if colour else severity) + first
    yield from _indented(rest)
    yield from _indented(_wrapped(" · ".join(_facts(finding)), width))
    if finding.evidence:
        yield from _indented(_wrapped(", ".join(map(_evidence, finding.evidence)), width))
    yield from _indented(_wrapped(f"→ {finding.next_step}", width))


def comparison_lines(comparison: Comparison, *, top: int, width: int | None) -> Iterator[str]:
    """Yield the changes from one session to another.

    These are the step, and the `top` operations that changed most.
    """
    yield from _wrapped(comparison.message, width)
    yield from operation_changes(comparison, top=top, width=width)


def operation_changes(comparison: Comparison, *, top: int, width: int | None) -> Iterator[str]:
    """Yield an empty line and the `top` operations that changed most, if any."""
    if comparison.operations[:top]:
        yield ""
        shown = comparison.operations[:top]
        has_shapes = any(change.shapes for change in shown)
        yield from table(shown, [*_CHANGES, _SHAPES] if has_shapes else _CHANGES, width=width)


def _facts(finding: Finding) -> Iterator[str]:
    yield finding.code
    if finding.cost_s > 0:
        yield f"costs {duration(finding.cost_s)} of each step ({percent(finding.cost_share)} %)"
    if finding.phase:
        yield f"phase {finding.phase}" + (f", operation {finding.operation}" if finding.operation else "")
    if finding.hosts:
        named = ", ".join(map(_host, finding.hosts[:_NAMED]))
        more = finding.host_count - len(finding.hosts[:_NAMED])
        yield named + (f" and {more} more" if more > 0 else "")


def _host(host: FindingHost) -> str:
    details = [f"rank {host.rank}" if host.rank is not None else "", f"node {host.node}" if host.node else ""]
    known = ", ".join(filter(None, details))
    return f"{host.pod or host.name} ({known})" if known else host.pod or host.name


def _evidence(evidence: Figure) -> str:
    return f"{evidence.name} {_amount(evidence.value, evidence.unit)}"


def _amount(value: float, unit: str) -> str:
    if unit == "s":
        return duration(value) if value >= 0 else f"-{duration(-value)}"
    if unit == "share":
        return f"{percent(value)} %"
    if unit == "bytes":
        return size(round(value))
    return f"{value:g} {unit}".rstrip()


def _wrapped(text: str, width: int | None) -> list[str]:
    """Return a text as lines that fit beside the severities."""
    columns = max(40, (width or _PLAIN_WIDTH) - _INDENT)
    return textwrap.wrap(printable(text), columns, break_long_words=False, break_on_hyphens=False) or [""]


def _indented(lines: list[str]) -> Iterator[str]:
    return (" " * _INDENT + line for line in lines)


def _time(seconds: float | None) -> str:
    return DASH if seconds is None else duration(seconds)


_CHANGES: Final[list[TableColumn[OperationChange]]] = [
    TableColumn("OPERATION", lambda each: each.name),
    TableColumn("PHASE", lambda each: each.phase),
    TableColumn("BEFORE", lambda each: _time(each.before_s), is_number=True),
    TableColumn("AFTER", lambda each: _time(each.after_s), is_number=True),
    TableColumn("CHANGE", lambda each: _amount(each.change_s, "s"), is_number=True),
    TableColumn("HOSTS", lambda each: str(each.hosts), is_number=True),
]
_SHAPES: Final[TableColumn[OperationChange]] = TableColumn(
    "NEW SHAPES", lambda each: " → ".join(each.shapes) if each.shapes else DASH
)
