"""Report options that are accepted but not used yet, as there is no control plane.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.run.options import RunOptions

_PARAMETERS: Final = ("base_url", "cluster_id")
_VARIABLES: Final = ("MLDIAG_CONTROL_PLANE_URL", "DIAGON_BASE_URL")
_ADVICE: Final = (
    "has no effect yet: this version of mldiagnostics does not report to a control plane; the run is recorded in its "
    "storage and sinks"
)


def without_effect(options: RunOptions, env: Mapping[str, str]) -> dict[str, str]:
    """Return a message for each parameter and variable that is set but unused, by key."""
    values = {name: getattr(options, name) for name in _PARAMETERS}
    parameters = {
        f"no-effect-{name}": f"machinelearning_run({name}={value!r}) {_ADVICE}"
        for name, value in values.items()
        if isinstance(value, str) and value
    }
    variables = {f"no-effect-{name}": f"{name}={env[name]!r} {_ADVICE}" for name in _VARIABLES if env.get(name)}
    return parameters | variables
