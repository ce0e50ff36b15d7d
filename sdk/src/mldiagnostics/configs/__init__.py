"""What a run was made of: gathered on a thread of the run's, so it may take its time, but imports no framework."""

from __future__ import annotations

from mldiagnostics.configs.software import software

__all__ = ["gather"]


def gather(framework: str) -> dict[str, dict[str, str]]:
    """Return the sections of a run's configurations that nobody has to write; `framework` is what the run said."""
    return {"softwareConfigs": software(framework)}
