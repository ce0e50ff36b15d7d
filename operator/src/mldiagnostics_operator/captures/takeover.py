"""Takeover of a capture: wait until no other process works on it."""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import Phase
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import ConnectionStatus
from mldiagnostics_kube.client.apiserver import NotFound, path_to

from mldiagnostics_operator.captures.recovery import Holder, HolderPod, leave_until, liveness
from mldiagnostics_operator.request_retry import retry_request
from mldiagnostics_operator.status_writer import ObjectGone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.v1alpha1 import ObjectMeta
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

_POLL_S: Final = 5.0


async def until_abandoned(
    meta: ObjectMeta, cluster: ApiClient, *, me: str, namespace: str, clock: Clock
) -> ConnectionStatus:
    """Wait until no other process works on the capture, and return its status.

    The operators' pods are in `namespace`. Raises ObjectGone if the capture is not running any more.
    """
    while True:
        status = await retry_request(partial(_running_status, cluster, meta))
        holder = status.holder or ""
        pod = await retry_request(partial(_pod, cluster, namespace, Holder.parse(holder).pod))
        now = clock()
        until = leave_until(liveness(holder, me=me, pod=pod), deadline=status.deadline, now=now)
        if until is None:
            return status
        await asyncio.sleep(min((until - now).total_seconds(), _POLL_S))


async def _running_status(cluster: ApiClient, meta: ObjectMeta) -> ConnectionStatus:
    """Read the status again: the event that led here may be old."""
    path = path_to(*CONNECTIONS.gvr, namespace=meta.namespace, name=meta.name)
    try:
        connection = await cluster.get(path)
    except NotFound as error:
        raise ObjectGone(str(error)) from error
    status = ConnectionStatus.model_validate(connection.get("status") or {})
    if connection["metadata"]["uid"] != meta.uid or status.phase is not Phase.RUNNING:
        raise ObjectGone("the capture is not running any more")
    return status


async def _pod(cluster: ApiClient, namespace: str, name: str) -> HolderPod | None:
    if not name:
        return None
    try:
        return _holder_pod(await cluster.get(path_to("", "v1", "pods", namespace=namespace, name=name)))
    except NotFound:
        return None


def _holder_pod(pod: Mapping[str, Any]) -> HolderPod:
    """Reduce a pod; the container that started first counts as the operator's."""
    status = pod.get("status") or {}
    states = [container.get("state") or {} for container in status.get("containerStatuses") or ()]
    started = [datetime.fromisoformat(state["running"]["startedAt"]) for state in states if "running" in state]
    return HolderPod(
        uid=pod["metadata"]["uid"],
        running=status.get("phase") == "Running" and bool(started),
        container_started=min(started, default=None),
    )
