"""The MLDiagnosticsConnection of a capture: its manifest, and its status as a result; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from mldiagnostics_api.resources import CONNECTIONS

from mldiagnostics_cli.exit_codes import FAILED, PARTIAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_cli.captures.cluster_target import ClusterTarget, TargetNarrowing
    from mldiagnostics_cli.captures.settings import CaptureSettings

    Body = Mapping[str, Any]

__all__ = ["CaptureStatus", "manifest"]

KEPT_S: Final = 7 * 86_400
"""Finished objects of captures by `mldiag` are deleted after a week; the profiles are kept."""
_NAME_CHARACTERS: Final = 40


def manifest(target: ClusterTarget, narrowing: TargetNarrowing, settings: CaptureSettings) -> dict[str, Any]:
    """Return the object to create; the API server completes its name.

    Raises:
        ConfigurationError: The target is not valid.
    """
    trigger: dict[str, Any] = {
        **target.fields(narrowing),
        "durationMilliseconds": settings.duration,
        "tracers": {
            "host": settings.host_tracer,
            "device": settings.device_tracer,
            "python": settings.python_tracer,
        },
    }
    optional = {
        "capturePort": settings.port,
        "storageLocation": settings.log_directory,
        "sessionId": settings.session,
        "allowOldServer": settings.allow_old_server or None,
        "dryRun": settings.dry_run or None,
    }
    trigger |= {name: value for name, value in optional.items() if value is not None}
    word = re.sub(r"[^a-z0-9-]+", "-", target.label.lower())[:_NAME_CHARACTERS].strip("-")
    return {
        "apiVersion": CONNECTIONS.api_version,
        "kind": CONNECTIONS.kind,
        "metadata": {"generateName": f"{word or 'capture'}-"},
        "spec": {"triggerCapture": trigger, "ttlSecondsAfterFinished": KEPT_S},
    }


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """The status of an object, as far as `mldiag capture` shows it."""

    name: str
    namespace: str
    is_started: bool
    """Whether an operator has seen the object."""
    is_complete: bool
    message: str
    progress: str
    reason: str
    """Result of a complete capture, as one word."""
    session: str
    location: str
    skew_ms: int | None
    bytes: int
    total: int
    captured: int
    results: tuple[Body, ...]

    @classmethod
    def of(cls, body: Body) -> Self:
        """Read an object as the API returns it."""
        metadata, status = body["metadata"], body.get("status") or {}
        conditions = {each["type"]: each for each in status.get("conditions") or ()}
        complete = conditions.get("Complete") or {}
        targets = status.get("targets") or {}
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            is_started=bool(status),
            is_complete=complete.get("status") == "True",
            message=status.get("message") or "",
            progress=status.get("progress") or "",
            reason=complete.get("reason") or "",
            session=status.get("sessionId") or "",
            location=(status.get("captureResult") or {}).get("outputLocation") or "",
            skew_ms=status.get("startSkewMilliseconds"),
            bytes=status.get("bytes") or 0,
            total=targets.get("total") or 0,
            captured=targets.get("captured") or 0,
            results=tuple(status.get("results") or ()),
        )

    @property
    def exit_code(self) -> int:
        """Return 0 if all targets were captured, 2 for a part of them, 1 for none."""
        if self.reason == "DryRun":
            return 0
        if not self.captured:
            return FAILED
        return 0 if self.captured == self.total else PARTIAL

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON, with the keys of a capture by address."""
        return {
            "object": f"{self.namespace}/{self.name}",
            "reason": self.reason,
            "message": self.message,
            "session": self.session or None,
            "directory": self.location or None,
            "skewMilliseconds": self.skew_ms,
            "targets": [dict(result) for result in self.results],
        }
