"""`mldiag capture` of virtual machines of Google Cloud, through tunnels of gcloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.capture.addresses import DEFAULT_PORT

from mldiagnostics_cli.captures.by_address import conclude, prepare, record, show_targets
from mldiagnostics_cli.captures.gce_tunnels import VirtualMachine, tunnels, workers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.captures.ending import CaptureEnd
    from mldiagnostics_cli.captures.settings import CaptureSettings
    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.interruption import Interruption


async def capture_vms(
    names: Sequence[str],
    settings: CaptureSettings,
    output: OutputFormat,
    *,
    interruption: Interruption,
    zone: str,
    is_tpu: bool,
) -> CaptureEnd:
    """Capture virtual machines, with all workers of TPU slices; print outcomes.

    A dry run opens no tunnel. A machine without a tunnel fails, and the others are captured.

    Raises:
        ConfigurationError: gcloud is not installed, or does not know a TPU VM.
        MLDiagnosticsError: No tunnel opens.
    """
    machines = [VirtualMachine(name, zone) for name in names]
    if is_tpu:
        machines = [worker for name in names for worker in await workers_of(name, zone)]
    stems, port = [machine.stem for machine in machines], settings.port or DEFAULT_PORT
    shown = [f"{stem}:{port}" for stem in stems]
    if settings.dry_run:
        return show_targets(prepare(shown, settings, stems), output)
    async with tunnels(machines, port) as addresses:
        report = await record(prepare(shown, settings, stems, through=addresses), interruption)
    return conclude(report, output, interruption)
