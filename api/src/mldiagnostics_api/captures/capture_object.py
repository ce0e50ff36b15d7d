"""The manifest and the status of a capture that a program makes for its user."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from mldiagnostics_api.resources import CONNECTIONS

KEPT_S: Final = 7 * 86_400
"""Finished objects of such captures are deleted after a week; the profiles are kept."""
_NAME_CHARACTERS: Final = 40


def manifest(trigger: Mapping[str, Any], *, label: str, order_id: str = "") -> dict[str, Any]:
    """Return the object to create.

    Args:
        trigger: Fields of `triggerCapture`.
        label: A word for the name, such as that of the run.
        order_id: Completes the name, so that an order which is sent again makes no second object; empty if the API
            server completes it.
    """
    word = re.sub(r"[^a-z0-9-]+", "-", label.lower())[:_NAME_CHARACTERS].strip("-") or "capture"
    return {
        "apiVersion": CONNECTIONS.api_version,
        "kind": CONNECTIONS.kind,
        "metadata": {"name": f"{word}-{order_id}"} if order_id else {"generateName": f"{word}-"},
        "spec": {"triggerCapture": dict(trigger), "ttlSecondsAfterFinished": KEPT_S},
    }


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """The status of an object, as far as users see it."""

    name: str
    namespace: str
    is_started: bool
    """Whether an operator has seen the object."""
    is_complete: bool
    phase: str
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
    results: tuple[Mapping[str, Any], ...]
    diagnosis: str
    """State of its diagnosis: Pending, Done or Failed; empty if the operator makes none."""
    diagnosis_message: str
    """Result of the diagnosis, or why there is none."""
    findings: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """Read an object as the API returns it."""
        metadata, status = body["metadata"], body.get("status") or {}
        conditions = {each["type"]: each for each in status.get("conditions") or ()}
        complete = conditions.get("Complete") or {}
        targets = status.get("targets") or {}
        diagnosis = status.get("diagnosis") or {}
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            is_started=bool(status),
            is_complete=complete.get("status") == "True",
            phase=status.get("phase") or "",
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
            diagnosis=diagnosis.get("state") or "",
            diagnosis_message=(conditions.get("Diagnosed") or {}).get("message") or "",
            findings=tuple(diagnosis.get("findings") or ()),
        )
