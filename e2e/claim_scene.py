"""Values of an operator whose Jobs and users see its traces, on a claim over a directory of the node."""

from typing import Any

NAME = "e2e-profiles"
_READERS = {
    "requests": {"cpu": "20m", "memory": "64Mi"},
    "limits": {"cpu": "2", "memory": "320Mi", "ephemeral-storage": "1Gi"},
}
"""Enough for the traces of the tests, on a node with two processors."""


def values(claim: str) -> dict[str, Any]:
    """Return the values of an operator whose volume is the claim, with small Jobs, and files for its users."""
    return {
        "policy.allowedStorage": {"*": ["volume:///"]},
        "volume.existingClaim": claim,
        "controlPlane.files.enabled": True,
        "diagnosis.resources": _READERS,
    }
