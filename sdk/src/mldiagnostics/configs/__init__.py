"""Describe software and hardware of a run, without importing a framework.

The calls may be slow, so they belong on a thread of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def gather(framework: str, known: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the automatic sections of a run's configurations that have changed.

    Hardware is known when the program uses it, and the framework when the program imports it.

    Args:
        framework: Current framework of the run.
        known: Current sections; complete ones are not gathered again.
    """
    from mldiagnostics.configs.hardware import hardware, is_known  # noqa: PLC0415 - brings the driver's bindings
    from mldiagnostics.configs.software import is_current, software  # noqa: PLC0415

    sections: dict[str, dict[str, str]] = {}
    if not is_current(known.get("softwareConfigs") or {}, framework):
        sections["softwareConfigs"] = software(framework)
    previous = known.get("hardwareConfigs") or {}
    if not previous or not is_known(previous):
        described = hardware()
        if described != previous:
            sections["hardwareConfigs"] = described
    return sections
