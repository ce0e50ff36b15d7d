"""The place of a process in its run, by the names of Google's SDK."""

from __future__ import annotations

import json
import socket

import pytest
from mldiagnostics.compat.host_utils import get_hostname, get_process_index, get_workload_details, is_master_host


@pytest.mark.parametrize(("rank", "leads"), [("0", True), ("3", False)])
def test_the_rank_is_that_of_the_launcher(rank: str, leads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert (get_process_index(), is_master_host(), get_hostname()) == (int(rank), leads, socket.gethostname())


def test_the_workload_is_the_injected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_workload_details() is None
    identifier = {"clustername": "c", "namespace": "ml", "metadata.kind": "JobSet", "metadata.name": "trainer"}
    metadata = {"creation-timestamp": "2026-11-21T10:00:00Z", "associated-labels": "team=a"}
    monkeypatch.setenv("GKE_DIAGON_IDENTIFIER", json.dumps(identifier))
    monkeypatch.setenv("GKE_DIAGON_METADATA", json.dumps(metadata))
    assert get_workload_details() == {
        "id": "trainer",
        "kind": "JobSet",
        "cluster": "c",
        "namespace": "ml",
        "parent_workload": None,
        "creation-timestamp": "2026-11-21T10:00:00+00:00",
        "labels": {"team": "a"},
    }
