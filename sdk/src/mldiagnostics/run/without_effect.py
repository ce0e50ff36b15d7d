"""What a run accepts and does not use yet: this version has no control plane to report to; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARAMETERS: Final = ("base_url", "cluster_id")
_VARIABLES: Final = ("MLDIAG_CONTROL_PLANE_URL", "DIAGON_BASE_URL")
_ADVICE: Final = (
    "has no effect yet: this version of mldiagnostics does not report to a control plane; the run is recorded in its "
    "storage and sinks"
)


def without_effect(said: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """Return a sentence for each parameter and variable that is set and has no effect, by a key for each."""
    parameters = {
        f"no-effect-{name}": f"machinelearning_run({name}={said[name]!r}) {_ADVICE}"
        for name in _PARAMETERS
        if isinstance(said.get(name), str) and said[name]
    }
    variables = {f"no-effect-{name}": f"{name}={env[name]!r} {_ADVICE}" for name in _VARIABLES if env.get(name)}
    return parameters | variables
