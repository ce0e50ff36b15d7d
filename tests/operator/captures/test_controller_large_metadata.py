"""Annotations of objects, 256 KiB each, do not stay in the operator's memory."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.runs.keys import ObjectKey
from support.cluster.definitions import install
from support.cluster.operating import operating
from support.cluster.run_world import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mldiagnostics_api.resources import Resource
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

DEADLINE_S = 120
OBJECTS = 60
NOTE_BYTES = 250_000
WAITS = {"triggerCapture": {"target": {"selector": {"matchLabels": {"app": "none"}}}, "waitForPodsSeconds": 3600}}


@pytest.fixture
async def installed(cluster: ApiClient) -> AsyncIterator[ApiClient]:
    """An API server with both resources; memory is traced."""
    for resource in (CONNECTIONS, RUNS):
        await install(cluster, resource)
    tracemalloc.start()
    yield cluster
    tracemalloc.stop()


def kept_notes() -> int:
    """Return the number of texts in memory that have the size of the annotation."""
    gc.collect()
    sizes = (trace.size for trace in tracemalloc.take_snapshot().traces)
    return sum(NOTE_BYTES <= size < NOTE_BYTES + 10_000 for size in sizes)  # buffers of TLS have 262 kB


async def check(cluster: ApiClient, resource: Resource, namespace: str, is_seen: Callable[[str], Any]) -> None:
    """Create the objects, wait until the operator has seen all, and check that their annotations are gone."""
    for number in range(OBJECTS):
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        metadata = {"name": f"annotated-{number}", "annotations": {"notes": "x" * NOTE_BYTES}}
        spec = WAITS if resource is CONNECTIONS else {"runId": f"{number:064x}"}
        await cluster.create(path_to(*resource.gvr, namespace=namespace), kind | {"metadata": metadata, "spec": spec})
    async with asyncio.timeout(DEADLINE_S):
        for number in range(OBJECTS):
            while not is_seen(f"annotated-{number}"):  # noqa: ASYNC110 - polls the operator
                await asyncio.sleep(0.1)
        while kept_notes() > OBJECTS // 4:  # noqa: ASYNC110 - answers of the last writes are on their way
            await asyncio.sleep(1)


async def test_captures_keep_no_annotations(installed: ApiClient, namespace: str, tmp_path: Path) -> None:
    async with operating(installed, namespace, tmp_path) as operator:
        await check(installed, CONNECTIONS, namespace, operator.versions.get)


async def test_runs_keep_no_annotations(installed: ApiClient, namespace: str, tmp_path: Path) -> None:
    async with running(installed, namespace, tmp_path) as world:
        runs = world.controller._runs
        await check(installed, RUNS, namespace, lambda name: runs.get(ObjectKey(namespace, name)))
