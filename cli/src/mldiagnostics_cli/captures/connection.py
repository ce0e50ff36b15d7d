"""The MLDiagnosticsConnection of a capture. Pure.

Its manifest from options, and its result as exit code and JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_api.captures import capture_object

from mldiagnostics_cli.exit_codes import FAILED, PARTIAL

if TYPE_CHECKING:
    from mldiagnostics_api.captures.capture_object import CaptureStatus

    from mldiagnostics_cli.captures.cluster_target import ClusterTarget, TargetNarrowing
    from mldiagnostics_cli.captures.settings import CaptureSettings


def manifest(target: ClusterTarget, narrowing: TargetNarrowing, settings: CaptureSettings) -> dict[str, Any]:
    """Return the object to create; the API server completes its name.

    Raises:
        ConfigurationError: The target is not valid.
    """
    trigger: dict[str, Any] = {
        **target.fields(narrowing),
        "tracers": {
            "host": settings.host_tracer,
            "device": settings.device_tracer,
            "python": settings.python_tracer,
        },
    }
    optional = {
        "durationMilliseconds": None if settings.past else settings.duration,
        "recording": "Past" if settings.past else None,
        "pulse": settings.pulse or None,
        "capturePort": settings.port,
        "storageLocation": settings.log_directory,
        "sessionId": settings.session,
        "allowOldServer": settings.allow_old_server or None,
        "dryRun": settings.dry_run or None,
        "diagnosis": None if settings.diagnosed else "Off",
    }
    trigger |= {name: value for name, value in optional.items() if value is not None}
    return capture_object.manifest(trigger, label=target.label)


def exit_code_of(status: CaptureStatus) -> int:
    """Return 0 if all targets were captured, 2 for a part of them, 1 for none."""
    if status.reason == "DryRun":
        return 0
    if not status.captured:
        return FAILED
    return 0 if status.captured == status.total else PARTIAL


def result_document(status: CaptureStatus) -> dict[str, Any]:
    """Return the result as JSON, with the keys of a capture by address."""
    return {
        "object": f"{status.namespace}/{status.name}",
        "reason": status.reason,
        "message": status.message,
        "session": status.session or None,
        "directory": status.location or None,
        "skewMilliseconds": status.skew_ms,
        "targets": [dict(result) for result in status.results],
    }
