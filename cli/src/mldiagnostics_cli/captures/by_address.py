"""`mldiag capture ADDRESS…`: the capture engine with progress and Ctrl-C."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mldiagnostics.capture import Control, Recording, TargetState, Tracers
from mldiagnostics.capture.addresses import targets_of
from mldiagnostics.capture.api import prepare_capture
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.layout import capture_record_key

from mldiagnostics_cli.captures.ending import STATE_COLOURS, CaptureEnd, opening_command
from mldiagnostics_cli.captures.progress import CaptureProgress
from mldiagnostics_cli.captures.settings import DEFAULT_DIRECTORY
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.exit_codes import FAILED, INTERRUPTED, PARTIAL
from mldiagnostics_cli.output import note, show_document, show_rows
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.capture import CaptureReport, Outcome, Target
    from mldiagnostics.capture.api import PreparedCapture

    from mldiagnostics_cli.captures.settings import CaptureSettings
    from mldiagnostics_cli.interruption import Interruption


async def capture_addresses(
    addresses: Sequence[str], settings: CaptureSettings, output: OutputFormat, *, interruption: Interruption
) -> CaptureEnd:
    """Capture hosts and print their outcomes.

    Raises:
        ConfigurationError: An argument is not valid, or the session exists. No host is contacted.
        StoreError: The log directory cannot be written. No host is contacted.
    """
    prepared = prepare(addresses, settings)
    if settings.dry_run:
        return show_targets(prepared, output)
    return conclude(await record(prepared, interruption), output, interruption)


def prepare(
    addresses: Sequence[str],
    settings: CaptureSettings,
    stems: Sequence[str] | None = None,
    *,
    through: Sequence[str] | None = None,
) -> PreparedCapture:
    """Return the capture of hosts; no host is contacted.

    Args:
        addresses: Addresses with ports, as they are shown.
        settings: Options of the capture.
        stems: Names of the trace files; None derives them from the addresses.
        through: Ends of tunnels to the addresses on this machine, which are contacted instead.
    """
    prepared = prepare_capture(
        addresses,
        storage=settings.log_directory or DEFAULT_DIRECTORY,
        duration_ms=settings.duration_ms(),
        session=settings.session,
        tracers=Tracers(settings.host_tracer, settings.device_tracer, settings.python_tracer),
        recording=Recording.PAST if settings.past else Recording.NOW,
        allow_old_server=settings.allow_old_server,
        stems=stems,
    )
    if through is None:
        return prepared
    ends = zip(prepared.targets, targets_of(through), strict=True)
    tunnelled = [
        replace(target, host=end.host, port=end.port, labels={_SHOWN_HOST: target.host, _SHOWN_PORT: str(target.port)})
        for target, end in ends
    ]
    return replace(prepared, targets=tunnelled)


def show_targets(prepared: PreparedCapture, output: OutputFormat) -> CaptureEnd:
    """Print the hosts of a dry run."""
    show_rows(prepared.targets, _TARGETS, output, name=lambda target: target.address, document=_target_document)
    note(f"Nothing was captured: --dry-run. Session {prepared.options.session} in {prepared.directory}.")
    return CaptureEnd(exit_code=0)


async def record(prepared: PreparedCapture, interruption: Interruption) -> CaptureReport:
    """Record all hosts with progress.

    The first Ctrl-C stops the recordings and keeps their traces.
    """
    control = Control()
    progress = CaptureProgress(len(prepared.targets), prepared.options.duration_ms)

    def stop() -> None:
        progress.is_cancelled = True
        note("Stopping the recordings; press Ctrl-C again to end without their traces.")
        control.terminate()

    try:
        with interruption.stopping(stop):
            async with progress.shown():
                report = await prepared.run(
                    control=control, on_outcome=lambda outcome: progress.show(_as_shown(outcome))
                )
        if not any(outcome.file for outcome in report.outcomes):
            with suppress(MLDiagnosticsError):  # without a trace it would be listed as a session without hosts
                await asyncio.to_thread(prepared.store.delete, capture_record_key(report.session))
        return replace(report, outcomes=tuple(map(_as_shown, report.outcomes)))
    except asyncio.CancelledError:
        note(f"Session {prepared.options.session} in {prepared.directory} is not complete.")
        raise


def _as_shown(outcome: Outcome) -> Outcome:
    """Return an outcome with the address of the host instead of that of its tunnel."""
    target = outcome.target
    if _SHOWN_HOST not in target.labels:
        return outcome
    shown = replace(target, host=target.labels[_SHOWN_HOST], port=int(target.labels[_SHOWN_PORT]))
    return replace(outcome, target=shown, message=outcome.message.replace(target.address, shown.address))


def conclude(
    report: CaptureReport, output: OutputFormat, interruption: Interruption, *, missing: int = 0
) -> CaptureEnd:
    """Print the outcomes; return the exit code and the location of the traces.

    Args:
        report: The outcomes.
        output: Requested format.
        interruption: Whether the user stopped the capture.
        missing: Number of targets that could not be contacted.
    """
    _show(report, output)
    captured = sum(outcome.state is TargetState.CAPTURED for outcome in report.outcomes)
    is_whole = captured == len(report.outcomes) and not missing
    code = 0 if is_whole else PARTIAL if captured else FAILED
    return CaptureEnd(
        exit_code=INTERRUPTED if interruption.is_requested else code,
        directory=report.directory if any(outcome.file for outcome in report.outcomes) else "",
        session=report.session,
    )


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
    if not stored_bytes:
        note("No trace was recorded, so no session was stored.")
    else:
        note(f"Session {report.session}: {size(stored_bytes)} in {report.directory}{skew}.")
        note(f"To open it: {opening_command(report.directory)}")


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


_SHOWN_HOST, _SHOWN_PORT = "host", "port"
"""Labels of a target that is reached through a tunnel."""

_TARGETS: list[TableColumn[Target]] = [
    TableColumn("ADDRESS", lambda target: target.address),
    TableColumn("FILE", lambda target: target.stem),
]
_OUTCOMES: list[TableColumn[Outcome]] = [
    TableColumn("ADDRESS", lambda outcome: outcome.target.address),
    TableColumn("STATE", lambda outcome: str(outcome.state), colours=STATE_COLOURS),
    TableColumn("REASON", lambda outcome: str(outcome.reason)),
    TableColumn("SIZE", lambda outcome: size(outcome.bytes), is_number=True),
    TableColumn("FILE", lambda outcome: outcome.file or DASH, is_wide=True),
    TableColumn("MESSAGE", lambda outcome: outcome.message or DASH),
]
