"""The public names of goodput modules, as an import shows them: run by the peer's Python and by ours.

python tests/support/goodput/public_names.py ml_goodput_measurement.src    print them as JSON
"""

from __future__ import annotations

import enum
import inspect
import json
import sys
from importlib import import_module
from types import FunctionType, GenericAlias
from typing import Any

MODULES = {
    "checkpoint_badput_calculator": "checkpoint_badput_calculator",
    "exclusion_utils": "goodput.queries.exclusion",
    "gcp_metrics": "gcp_metrics",
    "goodput": "goodput",
    "goodput_cache": "goodput_cache",
    "goodput_elastic": "goodput_elastic",
    "goodput_exclusion": "goodput.queries.exclusion",
    "goodput_utils": "goodput_utils",
    "monitoring": "monitoring",
    "monitoring_elastic": "monitoring_elastic",
}
"""The peer's module -> ours, below the package."""

_LITERALS = (bool, int, float, str, type(None))


def names_of(module: Any, package: str) -> dict[str, Any]:
    """Describe each public name of the module; one that comes from another module of the package by where it is."""
    names: dict[str, Any] = {}
    for name, value in sorted(vars(module).items()):
        home = str(getattr(value, "__module__", ""))
        if name.startswith("_"):
            continue
        if home.startswith(package) and home != module.__name__:
            names[name] = {"of": home.rpartition(".")[2]}
        elif home == module.__name__ or isinstance(value, GenericAlias):
            names[name] = described(value)
        elif name.isupper() and isinstance(value, (str, list, dict)):
            names[name] = {"value": value}
    return names


def described(value: Any) -> Any:
    """Return what programs rely on: members of enumerations, parameters, methods."""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return {"members": {member.name: member.value for member in value}}
    if isinstance(value, type):
        methods = {
            name: parameters(method)
            for name, method in inspect.getmembers(value, inspect.isfunction)
            if not name.startswith("_")
        }
        return {"parameters": parameters(value), "methods": methods}
    if isinstance(value, FunctionType):
        return {"parameters": parameters(value)}
    return {}


def parameters(function: Any) -> list[list[Any]]:
    """Return name, kind and literal default of each parameter; no default: required."""
    try:
        signature = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [[each.name, each.kind.name, _default(each)] for each in signature if each.name != "self"]


def _default(parameter: inspect.Parameter) -> list[Any]:
    if parameter.default is inspect.Parameter.empty:
        return []
    return [parameter.default] if isinstance(parameter.default, _LITERALS) else ["..."]


if __name__ == "__main__":
    prefix = sys.argv[1]
    import_module(prefix.partition(".")[0])
    print(json.dumps({name: names_of(import_module(f"{prefix}.{name}"), prefix.partition(".")[0]) for name in MODULES}))
