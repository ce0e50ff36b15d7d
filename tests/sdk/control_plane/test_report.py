"""Reports stay within the limits of the control plane, and steps have their time."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.control_plane.report import (
    MAX_CONFIG_BYTES,
    Collected,
    Progress,
    RunSnapshot,
    encode,
    fitting_configs,
)
from mldiagnostics.identity.origin import Origin
from support.records import json_values

ORIGIN = Origin("run", "name", "/storage", "0a0a0a0a", "host" * 100, world_size=2**40)
COLLECTED = Collected({}, [], {"port": 9999, "server": "jax", "version": None}, None, 256, "5,[1,2]", 258)


def report(*, leads: bool = True, configs: dict[str, Any] | None = None) -> dict[str, Any]:
    body = encode(
        ORIGIN,
        RunSnapshot("Active", facts={"group": "g"}),
        COLLECTED,
        Progress(),
        sequence=1,
        sent=5.0,
        host={"node": "n"},
        tensorflow=False,
        leads=leads,
        configs=configs,
    )
    document: dict[str, Any] = json.loads(body)
    return document


def depth(value: object) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def test_the_leading_process_adds_what_belongs_to_the_run() -> None:
    document = report(configs={"user": {"a": 1}})
    assert document["run"] == {"name": "name", "storage": "/storage", "group": "g"}
    assert document["configs"] == {"user": {"a": 1}}
    assert document["events"] == {"first": 256, "items": [5, [1, 2]]}
    assert document["profiler"] == {"ports": [9999], "server": "jax", "version": "", "tensorflow": False}
    assert report(leads=False, configs={}).keys() == document.keys() - {"run", "configs", "events"}


def test_numbers_and_names_stay_within_limits() -> None:
    document = report()
    assert document["worldSize"] == 2**31 - 1
    assert document["host"] == {"name": ("host" * 100)[:253], "slice": None, "node": "n"}


@given(json_values(), st.integers(0, 40))
def test_configurations_are_never_too_deep(value: object, levels: int) -> None:
    fitting, is_whole = fitting_configs({"software": {"a": 1}, "user": {"nested": nested(value, levels)}})
    assert is_whole
    assert 1 + depth(fitting) <= 16
    assert fitting["software"] == {"a": 1}


def test_configurations_of_the_program_that_are_too_large_are_left_out() -> None:
    configs = {"software": {"a": 1}, "user": {"text": "x" * MAX_CONFIG_BYTES}}
    assert fitting_configs(configs) == ({"software": {"a": 1}, "user": {}}, False)


def nested(value: object, times: int) -> object:
    for _ in range(times):
        value = [value]
    return value


def test_a_step_has_the_time_at_which_it_was_reached() -> None:
    progress = Progress()
    assert progress.document() is None
    progress.update(10, 100.0)
    assert progress.document() == {"step": 10, "stepTimeSeconds": None, "changed": 100.0}
    progress.update(10, 105.0, 0.25)
    progress.update(-1, 106.0, 0.25)
    progress.update(None, 107.0, 0.25)
    assert progress.document() == {"step": 10, "stepTimeSeconds": 0.25, "changed": 100.0}
    progress.update(30, 110.0, 0.5)
    assert progress.document() == {"step": 30, "stepTimeSeconds": 0.5, "changed": 110.0}
    progress.update(20, 120.0, 0.5)  # after a lost checkpoint
    assert progress.document() == {"step": 20, "stepTimeSeconds": 0.5, "changed": 120.0}
