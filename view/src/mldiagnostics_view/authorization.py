"""Rights of viewers, as the API server grants them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from mldiagnostics_api.resources import RUNS, SCHEDULES
from mldiagnostics_kube.client.apiserver import path_to
from typing_extensions import override

from mldiagnostics_view.limits import MAX_VERDICTS, PARALLEL_REVIEWS, VERDICT_AGE_S

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient


_REVIEWS: Final = path_to("authorization.k8s.io", "v1", "subjectaccessreviews")


class Viewer(NamedTuple):
    """A user as the API server knows it."""

    name: str
    groups: tuple[str, ...] = ()


class Right(NamedTuple):
    """A verb on a resource."""

    verb: str
    group: str
    resource: str


LIST_RUNS: Final = Right("list", RUNS.gvr[0], RUNS.plural)
GET_RUN: Final = Right("get", RUNS.gvr[0], RUNS.plural)
LIST_SCHEDULES: Final = Right("list", SCHEDULES.gvr[0], SCHEDULES.plural)
LIST_PODS: Final = Right("list", "", "pods")


class Access(Protocol):
    """Decides whether the viewer of one request has a right."""

    @property
    def viewer(self) -> str:
        """Return the name of the viewer; empty if the server does not know it."""

    async def allows(self, right: Right, namespace: str) -> bool:
        """Return whether the viewer has a right in a namespace.

        An empty one stands for all namespaces.

        Raises:
            ClusterError: The API server does not decide.
        """


class _Anybody(Access):
    """Rights of the server's only viewer, or of viewers who are its administrators."""

    @property
    @override
    def viewer(self) -> str:
        return ""

    @override
    async def allows(self, right: Right, namespace: str) -> bool:
        return True


ANYBODY: Final[Access] = _Anybody()


class SubjectReviews:
    """Decisions of the API server, each kept for `VERDICT_AGE_S`.

    Args:
        client: Client of an account that may create SubjectAccessReviews.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._turns = asyncio.Semaphore(PARALLEL_REVIEWS)
        self._verdicts: OrderedDict[tuple[Viewer, Right, str], tuple[float, asyncio.Future[bool]]] = OrderedDict()

    def of(self, viewer: Viewer) -> Access:
        """Return the access of a viewer."""
        return _ReviewedAccess(self, viewer)

    async def allows(self, viewer: Viewer, right: Right, namespace: str) -> bool:
        """See `Access.allows`."""
        key, now = (viewer, right, namespace), asyncio.get_running_loop().time()
        known = self._verdicts.get(key)
        if known is None or known[0] <= now or known[1].cancelled() or (known[1].done() and known[1].exception()):
            known = (now + VERDICT_AGE_S, asyncio.ensure_future(self._review(*key)))
            self._verdicts[key] = known
            self._verdicts.move_to_end(key)
            if len(self._verdicts) > MAX_VERDICTS:
                self._verdicts.popitem(last=False)
        return await asyncio.shield(known[1])

    async def _review(self, viewer: Viewer, right: Right, namespace: str) -> bool:
        attributes = {"verb": right.verb, "group": right.group, "resource": right.resource, "namespace": namespace}
        spec = {"user": viewer.name, "groups": list(viewer.groups), "resourceAttributes": attributes}
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        async with self._turns:
            review = await self._client.create(_REVIEWS, {**kind, "spec": spec})
        return bool(review.get("status", {}).get("allowed"))


class _ReviewedAccess(Access):
    """The access of one viewer."""

    def __init__(self, reviews: SubjectReviews, viewer: Viewer) -> None:
        self._reviews, self._viewer = reviews, viewer

    @property
    @override
    def viewer(self) -> str:
        return self._viewer.name

    @override
    async def allows(self, right: Right, namespace: str) -> bool:
        everywhere = await self._reviews.allows(self._viewer, right, "")
        return everywhere or (bool(namespace) and await self._reviews.allows(self._viewer, right, namespace))
