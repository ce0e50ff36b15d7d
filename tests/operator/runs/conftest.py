"""Fixtures for tests of the status of runs: a controller that looks at everything at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_operator.runs import cluster_records, creation_failures, observer, pod_examination, resync
from mldiagnostics_operator.runs import run as run_module
from support.definitions import install
from support.run_world import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client import ApiClient
    from support.run_world import World


@pytest.fixture
async def world(
    cluster: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """A controller over a namespace, without a run yet."""
    monkeypatch.setattr(cluster_records, "PAUSE_S", 0.1)
    monkeypatch.setattr(run_module, "UPDATE_INTERVAL_S", 0.1)
    monkeypatch.setattr(resync, "RESYNC_S", 0.5)
    monkeypatch.setattr(observer, "NOTIFY_S", 0.1)
    monkeypatch.setattr(pod_examination, "EXAMINED_S", (0.1, 1.0))
    monkeypatch.setattr(pod_examination, "PULLS_S", 0.1)
    monkeypatch.setattr(creation_failures, "PAUSE_S", 0.1)
    await install(cluster, RUNS)
    async with running(cluster, namespace, tmp_path) as made:
        yield made
