"""Models of the state in the journal of a run, which users may be able to write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

from mldiagnostics.text.timestamps import END_OF_TIME_S
from mldiagnostics_api.reports.models import (
    INTERVAL_S,
    MAX_PORTS,
    Label,
    Message,
    MetricName,
    Name,
    Number,
    Phase,
    RunReport,
    Seconds,
    SessionReport,
    Step,
    Url,
)
from mldiagnostics_api.v1alpha1.mlrun_status import MAX_ALIASES
from mldiagnostics_api.v1alpha1.shared import Model
from pydantic import BeforeValidator, Field, ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_INTERVAL_S = 86_400


def _text(value: object) -> str:
    """Return a value of a configuration as text.

    Earlier versions wrote values of any type.
    """
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


_Finite = Annotated[float, Field(allow_inf_nan=False)]


class SavedHost(Model):
    """`ReportedHost` of a process."""

    rank: Number | None = None
    slice: Number | None = None
    name: Name = ""
    pod: Name = ""
    pod_uid: Name = ""
    node: Name = ""
    attempt: Number = 0
    incarnation: Name = ""
    ports: Annotated[tuple[Annotated[int, Field(ge=1, le=65535)], ...], Field(max_length=MAX_PORTS)] = ()
    server: Label = ""
    server_version: Label = ""
    tensorflow: bool | None = None
    phase: Phase = "Active"
    reason: Label = ""
    message: Message = ""
    step: Step | None = None
    step_time_seconds: Seconds | None = None
    changed: Seconds | None = None
    clock_ahead: Annotated[float, Field(ge=-END_OF_TIME_S, le=END_OF_TIME_S)] = 0.0
    received: Seconds
    interval_s: Annotated[int, Field(ge=1, le=MAX_INTERVAL_S)] = INTERVAL_S
    unserved_s: Number = 0


class SavedLeader(RunReport):
    """`LeaderFacts` of a process."""

    metrics: dict[MetricName, _Finite | None] = Field(default_factory=dict)


class SavedProcess(Model):
    """The newest report of a process."""

    sequence: Step
    whole: Step | None = None
    first_received: Seconds
    world_size: Number | None = None
    host: SavedHost
    leader: SavedLeader | None = None
    sessions: tuple[SessionReport, ...] = ()


class SavedPeer(Model):
    """`PeerFacts` of a run."""

    aliases: Annotated[tuple[Label, ...], Field(max_length=MAX_ALIASES)] = ()
    name: Label = ""
    storage: Url = ""
    phase: Phase = "Active"
    ended: Seconds | None = None
    received: Seconds = 0.0


class SavedConfigs(Model):
    """Configurations of a run, after their place in the order of reports."""

    order: tuple[Number, Seconds, Step]
    value: dict[str, dict[str, Annotated[str, BeforeValidator(_text)]]]
    omitted: Number = 0


class SavedFacts(Model):
    """Facts of a run, without its processes."""

    owner: Annotated[str, Field(max_length=1024)] = ""
    first_received: Seconds = 0.0
    peer: SavedPeer | None = None
    configs: SavedConfigs | None = None
    events_until: Seconds | tuple[()] | tuple[Number, Seconds, Step, Seconds] = ()
    """The seconds alone are of an earlier version."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """Facts and processes of a run."""

    facts: SavedFacts
    processes: Mapping[str, SavedProcess]
    """By incarnation."""


Saved = TypeVar("Saved", bound=Model)


def validated(model: type[Saved], document: object) -> Saved:
    """Return a part of the state. Raises `ValueError`, which names the first fault."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, fault['loc']))[:200]}: {fault['msg']}") from None
