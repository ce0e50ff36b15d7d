"""`mldiag profiles get` and `compare`: figures of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.render.words import duration, percent
from mldiagnostics_diagnosis.comparison import compare

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.diagnosis.page import operation_changes
from mldiagnostics_cli.diagnosis.reading import diagnosed
from mldiagnostics_cli.output import is_terminal, show, show_document, terminal_width
from mldiagnostics_cli.profiles.figures import figures_of
from mldiagnostics_cli.profiles.references import find_session, opened
from mldiagnostics_cli.table import TableColumn, table
from mldiagnostics_cli.values import DASH, moment, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.findings import Finding
    from mldiagnostics.runs import SessionRow

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.profiles.figures import OperationTime, SessionFigures


def show_session(choice: SourceChoice, reference: str, output: OutputFormat, *, top: int) -> None:
    """Print the figures of a session, with its `top` operations.

    Nothing is written beside the traces.

    Raises:
        ConfigurationError: There is no such session, or it has no trace.
        StoreError: The traces cannot be read.
    """
    with opened(choice, [reference]) as source:
        if output is OutputFormat.NAME:
            show(find_session(source, reference).url)
            return
        session, result = diagnosed(source, reference, write=False)
    figures = figures_of(result.diagnosis, result.summaries)
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(_document(session, figures, top), output)
    else:
        show("\n".join(_page(session, figures, result.diagnosis.verdict, top)))


def compare_sessions(choice: SourceChoice, references: Sequence[str], output: OutputFormat, *, top: int) -> None:
    """Print two sessions side by side.

    These are the steps, and the `top` operations whose time differs most. Nothing is written beside the traces.

    Raises:
        ConfigurationError: There is no such session, or it has no trace.
        StoreError: The traces cannot be read.
    """
    with opened(choice, references) as source:
        pairs = [diagnosed(source, reference, write=False) for reference in references]
    sessions, results = zip(*pairs, strict=True)
    before, after = (figures_of(result.diagnosis, result.summaries) for result in results)
    comparison = compare(results[0].summaries, results[1].summaries, force=True)  # any two sessions stand side by side
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        document = {
            "sessions": [
                _document(session, figures, top) for session, figures in zip(sessions, (before, after), strict=True)
            ],
            "comparison": comparison.to_json(),
        }
        show_document(document, output)
        return
    width = terminal_width() if is_terminal() else None
    columns: list[TableColumn[tuple[str, str, str]]] = [
        TableColumn("", lambda line: line[0]),
        TableColumn(sessions[0].name, lambda line: line[1], is_number=True),
        TableColumn(sessions[1].name, lambda line: line[2], is_number=True),
    ]
    lines = table(list(_figures(before, after)), columns, width=width)
    show("\n".join([*lines, *operation_changes(comparison, top=top, width=width)]))


def _page(session: SessionRow, figures: SessionFigures, verdict: Finding, top: int) -> Iterator[str]:
    yield f"session     {session.name} ({session.kind})"
    yield f"hosts       {len(session.hosts)}: {', '.join(session.hosts)}"
    yield f"size        {size(session.bytes)}, stored {moment(session.t)}"
    yield f"url         {session.url}"
    yield f"device      {figures.device or DASH}"
    if figures.step_s is not None:
        times = f"{_time(figures.fastest_step_s)} to {_time(figures.slowest_step_s)}"
        yield f"steps       {figures.steps}, median {_time(figures.step_s)} ({times})"
        parts = sorted(figures.phases.items(), key=lambda part: -part[1])
        yield f"step time   {', '.join(f'{name} {percent(share)} %' for name, share in parts) or DASH}"
    else:
        yield "steps       none recorded; call run.step() in the loop, or use jax.profiler.StepTraceAnnotation"
    yield f"memory      {'peak ' + size(figures.peak_memory_bytes) if figures.peak_memory_bytes is not None else DASH}"
    yield f"verdict     {verdict.code}: {verdict.message}"
    if figures.operations[:top]:
        yield ""
        width = terminal_width() if is_terminal() else None
        yield from table(figures.operations[:top], _OPERATION_COLUMNS, width=width)


def _figures(before: SessionFigures, after: SessionFigures) -> Iterator[tuple[str, str, str]]:
    yield "steps", str(before.steps), str(after.steps)
    yield "step time", _time(before.step_s), _time(after.step_s)
    yield "slowest step", _time(before.slowest_step_s), _time(after.slowest_step_s)
    for phase in sorted(before.phases.keys() | after.phases.keys()):
        yield f"{phase} %", percent(before.phases.get(phase, 0.0)), percent(after.phases.get(phase, 0.0))
    yield "peak memory", size(before.peak_memory_bytes), size(after.peak_memory_bytes)


def _document(session: SessionRow, figures: SessionFigures, top: int) -> dict[str, Any]:
    summary = figures.to_json()
    return session.to_json() | {"summary": {**summary, "operations": summary["operations"][:top]}}


def _time(seconds: float | None) -> str:
    return DASH if seconds is None else duration(seconds)


_OPERATION_COLUMNS: list[TableColumn[OperationTime]] = [
    TableColumn("OPERATION", lambda each: each.name),
    TableColumn("PHASE", lambda each: each.phase),
    TableColumn("COUNT/STEP", lambda each: f"{each.count:.3g}", is_number=True),
    TableColumn("TIME/STEP", lambda each: _time(each.seconds), is_number=True),
    TableColumn("HOSTS", lambda each: str(each.hosts), is_number=True),
]
