"""Creation of one object for an order that may be sent again.

There is one object even if responses are lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import aiohttp
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, Unavailable
from mldiagnostics_kube.client.failures import ClusterFailure, failure_of
from mldiagnostics_kube.installation.captures import create_capture, path_of_capture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_kube.client.api_client import ApiClient


NOT_CREATED: Final = "This attempt created no capture"
_TOO_MANY_REQUESTS: Final = 429


async def create_once(client: ApiClient, namespace: str, body: Mapping[str, Any], *, cluster: str) -> Mapping[str, Any]:
    """Return the object of an order.

    It is a new one, or that of an earlier attempt whose response was lost.

    Args:
        client: Client whose account makes the object.
        namespace: Namespace of the object.
        body: The object, with a name that is always that of the order.
        cluster: The cluster in messages.

    Raises:
        ClusterFailure: The message says whether the object may have been created.
    """
    name = body["metadata"]["name"]
    try:
        try:
            return await create_capture(client, namespace, body)
        except Conflict as conflict:
            existing = await _existing(client, path_of_capture(namespace, name))
            if existing is None or not _is_of_order(existing, body):
                raise conflict from None
            return existing
    except ClusterError as error:
        failure = failure_of(error, cluster=cluster)
        outcome = (
            f"The capture '{name}' may have been created; try again: the same order creates no second one"
            if _may_be_done(error)
            else NOT_CREATED
        )
        raise ClusterFailure(f"{failure}. {outcome}.", status=failure.status) from error


async def _existing(client: ApiClient, path: str) -> Mapping[str, Any] | None:
    try:
        return await client.get(path)
    except NotFound:  # the conflict was about another object, such as a quota
        return None


def _is_of_order(existing: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Return whether an object has the hosts, duration and viewer of an order."""
    fields = existing["spec"]["triggerCapture"].items()
    annotations = existing["metadata"].get("annotations") or {}
    return (
        body["spec"]["triggerCapture"].items() <= fields
        and (body["metadata"].get("annotations") or {}).items() <= annotations.items()
    )


def _may_be_done(error: ClusterError) -> bool:
    """Return whether the API server may have done what a failed request asked for."""
    was_sent = not isinstance(error.__cause__, aiohttp.ClientConnectorError)
    return isinstance(error, Unavailable) and was_sent and error.status != _TOO_MANY_REQUESTS
