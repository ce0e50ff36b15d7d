"""`mldiag capture ADDRESS…`: the engine of `mldiagnostics.capture` with progress and Ctrl-C."""

from __future__ import annotations

import asyncio
import shlex
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from mldiagnostics.capture import Control, TargetState, Tracers
from mldiagnostics.capture.api import prepare_capture

from mldiagnostics_cli.captures.progress import CaptureProgress
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.exit_codes import FAILED, INTERRUPTED, PARTIAL
from mldiagnostics_cli.output import note, show_document, show_rows
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.capture import CaptureReport, Outcome, Target
    from mldiagnostics.capture.api import PreparedCapture

__all__ = ["CaptureSettings", "capture_addresses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """Options of a capture; the duration is in milliseconds."""

    log_directory: str
    duration: int
    session: str | None
    host_tracer: int
    device_tracer: int
    python_tracer: int
    allow_old_server: bool
    dry_run: bool


def capture_addresses(addresses: Sequence[str], settings: CaptureSettings, output: OutputFormat) -> None:
    """Capture hosts, print their outcomes, and exit with the code of the whole.

    Raises:
        ConfigurationError: An argument is not valid, or the session exists. No host is contacted.
        StoreError: The log directory cannot be written. No host is contacted.
    """
    prepared = prepare_capture(
        addresses,
        storage=settings.log_directory,
        duration_ms=settings.duration,
        session=settings.session,
        tracers=Tracers(settings.host_tracer, settings.device_tracer, settings.python_tracer),
        allow_old_server=settings.allow_old_server,
    )
    if settings.dry_run:
        show_rows(prepared.targets, _TARGETS, output, name=lambda target: target.address, document=_target_document)
        note(f"Nothing was captured: --dry-run. Session {prepared.options.session} in {prepared.directory}.")
        return
    control = Control()
    report = asyncio.run(_capture(prepared, control))
    _show(report, output)
    raise click.exceptions.Exit(INTERRUPTED if control.terminated else _exit_code(report.outcomes))


async def _capture(prepared: PreparedCapture, control: Control) -> CaptureReport:
    progress = CaptureProgress(len(prepared.targets), prepared.options.duration_ms)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)  # the next Ctrl-C ends at once
        progress.is_cancelled = True
        note("Stopping the recordings; press Ctrl-C again to end without their traces.")
        control.terminate()

    loop.add_signal_handler(signal.SIGINT, stop)
    async with progress.shown():
        return await prepared.run(control=control, on_outcome=progress.show)


def _show(report: CaptureReport, output: OutputFormat) -> None:
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(_document(report), output)
        return
    if output is OutputFormat.NAME:
        stored = [outcome for outcome in report.outcomes if outcome.file is not None]
        show_rows(stored, _OUTCOMES, output, name=lambda outcome: outcome.file or "", document=_outcome_document)
        return
    show_rows(report.outcomes, _OUTCOMES, output, name=lambda outcome: outcome.file or "", document=_outcome_document)
    stored_bytes = sum(outcome.bytes or 0 for outcome in report.outcomes)
    skew = "" if report.skew_ms is None else f", starts within {report.skew_ms:.1f} ms"
    note(f"Session {report.session}: {size(stored_bytes)} in {report.directory}{skew}.")
    if stored_bytes:
        note(f"To open it: xprof --logdir {shlex.quote(report.directory)}")


def _exit_code(outcomes: Sequence[Outcome]) -> int:
    captured = sum(outcome.state is TargetState.CAPTURED for outcome in outcomes)
    return 0 if captured == len(outcomes) else PARTIAL if captured else FAILED


def _document(report: CaptureReport) -> dict[str, Any]:
    return {
        "session": report.session,
        "directory": report.directory,
        "skewMilliseconds": report.skew_ms,
        "targets": [_outcome_document(outcome) for outcome in report.outcomes],
    }


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    return _target_document(outcome.target) | {
        "state": str(outcome.state),
        "reason": str(outcome.reason),
        "message": outcome.message,
        "file": outcome.file,
        "bytes": outcome.bytes,
    }


def _target_document(target: Target) -> dict[str, Any]:
    return {"host": target.host, "port": target.port, "stem": target.stem}


_STATE_COLOURS = {"Captured": "\x1b[32m", "Failed": "\x1b[31m", "Skipped": "\x1b[33m", "Cancelled": "\x1b[33m"}
_TARGETS: list[TableColumn[Target]] = [
    TableColumn("ADDRESS", lambda target: target.address),
    TableColumn("FILE", lambda target: target.stem),
]
_OUTCOMES: list[TableColumn[Outcome]] = [
    TableColumn("ADDRESS", lambda outcome: outcome.target.address),
    TableColumn("STATE", lambda outcome: str(outcome.state), colours=_STATE_COLOURS),
    TableColumn("REASON", lambda outcome: str(outcome.reason)),
    TableColumn("SIZE", lambda outcome: size(outcome.bytes), is_number=True),
    TableColumn("FILE", lambda outcome: outcome.file or DASH, is_wide=True),
    TableColumn("MESSAGE", lambda outcome: outcome.message or DASH),
]
