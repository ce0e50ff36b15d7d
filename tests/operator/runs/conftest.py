"""Fixtures for tests of the status of runs: a controller that looks at everything at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_operator.runs import resync, run
from mldiagnostics_operator.runs.status import cluster_records
from mldiagnostics_operator.runs.watches import creation_failures, pod_examination, pod_watches
from support.cluster.definitions import install
from support.cluster.run_world import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.run_world import World


@pytest.fixture
async def world(
    cluster: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """A controller over a namespace, without a run yet."""
    monkeypatch.setattr(cluster_records, "PAUSE_S", 0.1)
    monkeypatch.setattr(run, "UPDATE_INTERVAL_S", 0.1)
    monkeypatch.setattr(resync, "RESYNC_S", 0.5)
    monkeypatch.setattr(pod_watches, "NOTIFY_S", 0.1)
    monkeypatch.setattr(pod_examination, "EXAMINED_S", (0.1, 1.0))
    monkeypatch.setattr(pod_examination, "PULLS_S", 0.1)
    monkeypatch.setattr(creation_failures, "PAUSE_S", 0.1)
    await install(cluster, RUNS)
    async with running(cluster, namespace, tmp_path) as made:
        yield made
