from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.captures.queue.pod_waits import PodWaits, TooManyWaits
from support.cluster import builders

if TYPE_CHECKING:
    from support.cluster.operating import Namespace

pytestmark = pytest.mark.apiserver
LONG_S = 60.0


async def test_a_change_of_the_pods_wakes_every_wait(ml: Namespace) -> None:
    waits = PodWaits(ml.cluster, per_namespace=2)
    async with waits.join(ml.name, ml.name) as first, waits.join("other", ml.name) as second:
        await first.until_changed(LONG_S)  # the watch has begun: pods may have changed before
        await second.until_changed(LONG_S)
        async with asyncio.TaskGroup() as group, asyncio.timeout(LONG_S):
            group.create_task(first.until_changed(LONG_S))
            group.create_task(second.until_changed(LONG_S))
            body = builders.pod("p", namespace=ml.name)
            await ml.cluster.create(path_to("", "v1", "pods", namespace=ml.name), body)  # one change: without a status
        assert not first.changed.is_set()


async def test_a_namespace_has_only_so_many_waits(ml: Namespace) -> None:
    waits = PodWaits(ml.cluster, per_namespace=2)
    async with waits.join(ml.name, ml.name), waits.join("other", ml.name):
        async with waits.join(ml.name, ml.name):
            with pytest.raises(TooManyWaits):
                async with waits.join(ml.name, ml.name):
                    raise AssertionError
        async with waits.join(ml.name, ml.name):
            pass
