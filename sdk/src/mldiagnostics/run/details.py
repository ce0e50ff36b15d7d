"""Describe how a run was started, in a few log lines at level DEBUG; pure."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.jsonable import jsonable
from mldiagnostics.run.settings import VARIABLES
from mldiagnostics.text.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.identity.resolve import ResolvedIdentity
    from mldiagnostics.run.arguments import RunArguments


def details(
    origin: Origin,
    *,
    arguments: RunArguments,
    identity: ResolvedIdentity,
    sinks: Sequence[str],
    env: Mapping[str, str],
    leads: bool,
    heartbeat_s: float,
    control_plane: str | None,
) -> Iterator[str]:
    """Yield lines about run, arguments, environment and sinks, without secrets.

    Args:
        origin: the process as its records describe it.
        arguments: the valid arguments, defaults included.
        identity: the resolved identity and its source.
        sinks: names of the sinks that records go to.
        env: the environment; only variables that the SDK reads are shown.
        leads: whether this process writes run.json.
        heartbeat_s: seconds between heartbeats.
        control_plane: URL to which the process reports, if any.
    """
    own = {field.name: getattr(origin, field.name) for field in fields(origin)}
    yield _line("run", {**own, "directory": origin.directory, "writes_run_json": leads, "heartbeat_s": heartbeat_s})
    shared = identity.identity
    source = {"source": shared.source, "workload": dict(shared.workload)} if shared else {"source": "fresh"}
    yield _line("identity", source)
    yield _line("arguments", {field.name: getattr(arguments, field.name) for field in fields(arguments)})
    names = [name for variable in VARIABLES for name in variable.name.replace(" and ", ", ").split(", ")]
    yield _line("environment", {name: env[name] for name in names if name in env})
    yield _line("sinks", {"names": list(sinks), "urls": list(arguments.sinks)})
    yield _line("control plane", {"url": control_plane})
    yield _line("storage", {"root": origin.storage, "named_by_program": arguments.storage or None})


def _line(event: str, extras: Mapping[str, Any]) -> str:
    shown = jsonable(extras)
    pairs = shown.items() if isinstance(shown, dict) else ()
    return f"run start: {event}: " + " ".join(f"{key}={_text(value)}" for key, value in pairs)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value and " " not in value else dumps(value)
