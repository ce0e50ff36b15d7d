"""run.json over attempts keeps the history, with any content of the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import diagnostics
from mldiagnostics.lifecycle.history import MAX_ATTEMPTS, continued, merged
from mldiagnostics.run.manifest import Manifest
from mldiagnostics.spool.directory import abandoned_directories
from mldiagnostics.spool.storage import RunStorage
from support.records import origin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from random import Random

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def document(attempt: int, *, phase: str = "Active", created: float = 100.0) -> dict[str, Any]:
    return {
        "runId": "r", "attempt": attempt, "incarnation": f"i{attempt}", "phase": phase, "reason": "", "message": "",
        "created": created + attempt, "started": created + attempt, "ended": None, "heartbeat": {"t": 150.0 + attempt},
    }  # fmt: skip


@given(st.lists(st.sampled_from(["Active", "Completed", "Failed"]), min_size=1, max_size=6))
def test_every_attempt_is_remembered_with_how_it_ended(phases: list[str]) -> None:
    written: dict[str, Any] | None = None
    for attempt, phase in enumerate(phases):
        written = continued(document(attempt, phase=phase), written)
        written = continued(document(attempt, phase=phase), written)  # as each heartbeat does
    assert written
    assert written["created"] == 100.0
    assert [past["attempt"] for past in written["attempts"]] == list(range(len(phases) - 1))
    assert [past["phase"] for past in written["attempts"]] == [
        "Failed" if phase == "Active" else phase for phase in phases[:-1]
    ]


def test_an_attempt_that_did_not_end_itself_was_lost_at_its_last_sign_of_life() -> None:
    [past] = continued(document(1), continued(document(0), None))["attempts"]
    assert (past["phase"], past["reason"], past["ended"]) == ("Failed", "Lost", 150.0)


def test_the_history_has_an_end() -> None:
    written = None
    for attempt in range(MAX_ATTEMPTS + 5):
        written = continued(document(attempt), written)
    assert written
    assert len(written["attempts"]) == MAX_ATTEMPTS


@given(st.dictionaries(st.sampled_from(["runId", "attempts", "heartbeat", "created", "phase", "incarnation"]), JSON))
def test_anything_may_stand_in_the_file(earlier: dict[str, Any]) -> None:
    written = continued(document(0), {**earlier, "runId": "r"})
    assert json.loads(json.dumps(written))["runId"] == "r"
    assert written["created"] <= 100.0


@pytest.mark.parametrize("incarnation", [None, [], {"i": 0}])
def test_an_attempt_without_a_valid_incarnation_is_an_earlier_one(incarnation: object) -> None:
    [past] = continued(document(1), {**document(0), "incarnation": incarnation})["attempts"]
    assert (past["attempt"], past["phase"], past["incarnation"]) == (0, "Failed", incarnation)


def test_a_daemon_continues_the_attempt_of_its_parent() -> None:
    assert continued({**document(0), "incarnation": "i9", "forkedFrom": "i0"}, document(0))["attempts"] == []


def test_another_runs_file_is_not_continued() -> None:
    assert continued(document(1), {**document(0), "runId": "other"})["attempts"] == []


def test_a_file_that_is_broken_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r/run.json").write_text("{")
    storage = RunStorage(origin(tmp_path))
    assert Manifest(lambda: storage, "r").write(document(0))
    assert json.loads((tmp_path / "r/run.json").read_text())["attempts"] == []


def test_a_failed_storage_is_reported_once_and_retried(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text("in the way")
    storage = RunStorage(origin(place))
    manifest, key = Manifest(lambda: storage, "r"), f"spool {place}"
    assert not manifest.write(document(0))
    assert diagnostics.counts()[key] == 1
    place.unlink()
    assert manifest.write(document(0, phase="Completed"))
    storage.close()
    assert list(abandoned_directories(str(place))) == []  # the stored document is newer than the spooled one


def test_an_attempt_that_could_not_be_stored_is_part_of_the_next_ones_history(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text("in the way")
    for attempt in range(2):
        storage = RunStorage(origin(place, incarnation=f"{attempt:08}"))
        assert not Manifest(lambda storage=storage: storage, "r").write(document(attempt))  # type: ignore[misc]
        storage.close()
    place.unlink()
    storage = RunStorage(origin(place, incarnation="00000002"))
    manifest = Manifest(lambda: storage, "r")
    for _ in range(2):  # as each heartbeat does
        assert manifest.write(document(2))
    written = json.loads((place / "r/run.json").read_text())
    assert [past["attempt"] for past in written["attempts"]] == [0, 1]
    assert written["created"] == 100.0


@given(st.lists(st.sampled_from(["Active", "Completed", "Failed"]), min_size=1, max_size=6), st.randoms())
def test_attempts_merge_into_the_same_history_in_any_order(phases: list[str], random: Random) -> None:
    documents = [continued(document(attempt, phase=phase), None) for attempt, phase in enumerate(phases)]
    one: Mapping[str, Any] | None = None
    other: Mapping[str, Any] | None = None
    for each in documents:
        one = merged(one, each)
    for each in random.sample(documents * 2, len(documents) * 2):
        other = merged(other, each)
    assert one == other
    assert one is not None
    assert [past["attempt"] for past in one["attempts"]] == list(range(len(phases) - 1))


@given(st.dictionaries(st.sampled_from(["runId", "attempts", "heartbeat", "created", "started", "incarnation"]), JSON))
def test_any_documents_can_be_merged(manifest: dict[str, Any]) -> None:
    assert merged(document(0), {**manifest, "runId": "r"})["runId"] == "r"
    assert merged({**manifest, "runId": "r"}, document(0))["runId"] == "r"
