"""`xprofiler capture` of pods, by an operator's object or directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_kube.client.failures import ClusterFailure

from mldiagnostics_cli.captures.by_object import capture_in_cluster
from mldiagnostics_cli.captures.cluster_target import ClusterTarget, TargetNarrowing
from mldiagnostics_cli.captures.direct import capture_directly
from mldiagnostics_cli.captures.settings import CaptureSettings
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.captures.ending import CaptureEnd
    from mldiagnostics_cli.interruption import Interruption


_NOT_FOUND = 404


def settings_of(*, log_directory: str, port: int, duration_ms: int) -> CaptureSettings:
    """Return the settings of a capture; the levels of the tracers are those of XProf."""
    return CaptureSettings(log_directory=log_directory, duration=duration_ms, port=port)


async def capture_pods(pods: Sequence[str], settings: CaptureSettings, interruption: Interruption) -> CaptureEnd:
    """Capture pods of the namespace of the current context, and print their outcomes."""
    target, narrowing, options = ClusterTarget(pods=tuple(pods)), TargetNarrowing(), ClusterOptions()
    try:
        return await capture_in_cluster(
            options, target, narrowing, settings, OutputFormat.TABLE, interruption=interruption, wait=True
        )
    except ClusterFailure as failure:
        if failure.status != _NOT_FOUND:
            raise
        note("The cluster has no operator of mldiagnostics; the pods are captured by port-forward.")
        return await capture_directly(
            options, target, narrowing, settings, OutputFormat.TABLE, interruption=interruption
        )
