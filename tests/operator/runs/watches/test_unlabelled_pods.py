"""Runs whose pods the webhook did not label, on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster import builders
from support.cluster.run_world import attempt

if TYPE_CHECKING:
    from support.cluster.run_world import World

pytestmark = pytest.mark.apiserver


async def test_pods_without_the_label_of_the_run_are_followed_by_those_of_their_controller(world: World) -> None:
    await world.start()
    await world.pod("w-0", "node-0", labelled=False)
    await world.pod("w-1", "node-1", labelled=False)
    await world.set_jobset(restarts=0, ready=2)
    run = await world.until(lambda run: attempt(run, 0).get("startUp", {}).get("startedTime"))
    assert run["status"]["hosts"]["expected"] == 2
    pods = path_to("", "v1", "pods", namespace=world.ml.name)
    stranger = builders.pod("loose", namespace=world.ml.name)
    stranger["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-uid": world.jobset["metadata"]["uid"]}
    await world.ml.cluster.create(pods, stranger)
    await world.fail("w-1", 3)
    await world.set_jobset(restarts=1, ready=0)
    run = await world.until(lambda run: attempt(run, 0).get("cause") == "ExitCode")
    assert attempt(run, 0)["causeMessage"] == "pod 'w-1': container 'train' ended with exit code 3"
    for name in ("w-0", "w-1"):
        await world.ml.remove_pod(name)
    await world.pod("w-2", "node-0", 1, labelled=False)
    await world.pod("w-3", "node-1", 1)  # the webhook is back
    await world.set_jobset(restarts=1, ready=2)
    run = await world.until(lambda run: attempt(run, 1).get("startUp", {}).get("startedTime"))
    assert [each["attempt"] for each in run["status"]["attempts"]] == [0, 1]
