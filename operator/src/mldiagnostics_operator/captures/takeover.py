"""What an earlier process left behind: whether it still lives, and how far its capture had come."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import Phase
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import ConnectionStatus
from mldiagnostics_kube.apiserver import NotFound, Unavailable, path_to
from mldiagnostics_kube.retry import retry

from mldiagnostics_operator.captures.recovery import Holder, HolderPod, leave_until, liveness
from mldiagnostics_operator.status_writer import ObjectGone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.v1alpha1 import ObjectMeta
    from mldiagnostics_kube.client import ApiClient

_LOOK_AGAIN_S: Final = 5.0


async def until_abandoned(meta: ObjectMeta, cluster: ApiClient, *, me: str, namespace: str) -> ConnectionStatus:
    """Return the status that was left once nobody else works on the capture; operators' pods are in `namespace`.

    Raises Gone when there is nothing left to take over.
    """
    while True:
        status = await retry(partial(_running, cluster, meta), on=Unavailable)
        holder = status.holder or ""
        seen = await retry(partial(_pod, cluster, namespace, Holder.parse(holder).pod), on=Unavailable)
        now = datetime.now(UTC)
        until = leave_until(liveness(holder, me=me, pod=seen), deadline=status.deadline, now=now)
        if until is None:
            return status
        await asyncio.sleep(min((until - now).total_seconds(), _LOOK_AGAIN_S))


async def _running(cluster: ApiClient, meta: ObjectMeta) -> ConnectionStatus:
    """Read the status anew: the event that led here may be old."""
    path = path_to(*CONNECTIONS.gvr, namespace=meta.namespace, name=meta.name)
    try:
        found = await cluster.get(path)
    except NotFound as absent:
        raise ObjectGone(str(absent)) from absent
    status = ConnectionStatus.model_validate(found.get("status") or {})
    if found["metadata"]["uid"] != meta.uid or status.phase is not Phase.RUNNING:
        raise ObjectGone("it is not running any more")
    return status


async def _pod(cluster: ApiClient, namespace: str, name: str) -> HolderPod | None:
    if not name:
        return None
    try:
        return _holder_pod(await cluster.get(path_to("", "v1", "pods", namespace=namespace, name=name)))
    except NotFound:
        return None


def _holder_pod(pod: Mapping[str, Any]) -> HolderPod:
    """Reduce a pod; the container that started first stands for the operator's, sidecars may be restarted."""
    status = pod.get("status") or {}
    states = [container.get("state") or {} for container in status.get("containerStatuses") or ()]
    started = [datetime.fromisoformat(state["running"]["startedAt"]) for state in states if "running" in state]
    return HolderPod(
        uid=pod["metadata"]["uid"],
        running=status.get("phase") == "Running" and bool(started),
        container_started=min(started, default=None),
    )
