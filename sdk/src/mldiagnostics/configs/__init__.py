"""What a run was made of: gathered on a thread of the run's, so it may take its time, but imports no framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["gather"]


def gather(framework: str, known: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the sections of a run's configurations that nobody has to write, as far as they are news.

    `framework` is that of the run by now. `known` are the sections as they are; those that say everything are left
    alone: hardware is known only when the program uses it, and the framework only when the program imports it.
    """
    from mldiagnostics.configs.hardware import hardware, is_known  # noqa: PLC0415 - brings the driver's bindings
    from mldiagnostics.configs.software import is_current, software  # noqa: PLC0415

    found: dict[str, dict[str, str]] = {}
    if not is_current(known.get("softwareConfigs") or {}, framework):
        found["softwareConfigs"] = software(framework)
    seen = known.get("hardwareConfigs") or {}
    if not seen or not is_known(seen):
        described = hardware()
        if described != seen:
            found["hardwareConfigs"] = described
    return found
