"""The API of the peer's self-hosted client, on a plain HTTP port of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import orjson
from aiohttp import web
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.serving.rates import RateLimits

from mldiagnostics_operator.control_plane.http import bodies
from mldiagnostics_operator.control_plane.http.bodies import InvalidBody
from mldiagnostics_operator.control_plane.identity.attribution import NotAttributed
from mldiagnostics_operator.control_plane.identity.lookups import Overloaded
from mldiagnostics_operator.control_plane.journal.journal import JournalUnavailable
from mldiagnostics_operator.control_plane.limits import MAX_ADDRESSES, REPORTS_BURST, REPORTS_PER_SECOND
from mldiagnostics_operator.control_plane.memory.table import NotTheReporter, TableFull

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_api.reports.models import Phase
    from mldiagnostics_kube.serving.bounded_server import Respond

    from mldiagnostics_operator.control_plane.identity.attribution import Attribution
    from mldiagnostics_operator.control_plane.identity.pod_addresses import PodAddresses
    from mldiagnostics_operator.control_plane.journal.journal import Journal
    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.control_plane.telemetry import ControlPlaneMetrics

RUNS: Final = "/v1/machineLearningRuns"
AGENT: Final = "/v1/agent-info"
_RUN: Final = re.compile(rf"{RUNS}(?:/([^/]+))?/?")
_PHASES: Final[Mapping[str, Phase]] = {
    "STATE_RUNNING": "Active",
    "STATE_SUCCEEDED": "Completed",
    "STATE_FAILED": "Failed",
}
_MAX_TEXT: Final = 256
_MAX_URL: Final = 2048


class PeerEndpoint:
    """Serves `google-cloud-mldiagnostics` in its self-hosted mode.

    Its client sends no token, and any HTTP error but 409 ends the training. So the run is that of the pod with the
    client's address, and a well-formed request is always answered with 200: one that belongs to no run changes nothing
    and is counted. Under pressure the connection is closed, which the client survives.
    """

    def __init__(
        self,
        *,
        table: ReportTable,
        journal: Journal,
        attribution: Attribution,
        addresses: PodAddresses,
        cluster_name: str,
        metrics: ControlPlaneMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._table = table
        self._journal = journal
        self._attribution = attribution
        self._addresses = addresses
        self._cluster_name = cluster_name
        self._metrics = metrics
        self._clock = clock
        self._rates = RateLimits(REPORTS_PER_SECOND, REPORTS_BURST, most=MAX_ADDRESSES)

    def route(self, request: web.BaseRequest) -> Respond | web.Response:
        """Read the head of a request; return its handler, or a response at once."""
        if request.path == AGENT and request.method in ("GET", "HEAD"):
            return self._answer({"cluster_id": self._cluster_name})
        path = _RUN.fullmatch(request.rel_url.raw_path)
        if path is None:
            return self._answer({"error": f"{request.path[:200]}: no such path"}, status=404)
        if request.method != "PATCH":
            return self._dropped({}, "method")
        client, encoding = request.remote or "", request.headers.get("Content-Encoding", "")
        run = unquote(path[1] or "")[:_MAX_TEXT]

        async def respond(body: bytes) -> web.Response:
            try:
                return await self._patch(run, client, body, encoding)
            except Overloaded:
                self._metrics.answered("peer", 0)
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()

        return respond

    async def _patch(self, run: str, client: str, body: bytes, encoding: str) -> web.Response:
        try:
            document = bodies.simple_json(bodies.Encoded(body, encoding)) if body else {}
        except InvalidBody as error:
            return self._answer({"error": str(error)}, status=error.status)
        if not isinstance(document, dict):
            return self._answer({"error": "body: is not an object; send a MachineLearningRun"}, status=400)
        alias = run or _text(document.get("logicalId"))
        # The client uses the last part of `name` as run id, on the master only: its own id keeps the workers with it.
        answer = {**document, "name": f"machineLearningRuns/{alias}"} if alias else document
        if self._rates.take(client, self._clock()):
            raise Overloaded
        key = await self._key(client)
        if key is None:
            return self._dropped(answer, "unattributed")
        try:
            if self._table.owner(key) is None:
                await self._journal.recall(key, owner="")
            self._apply(key, alias, document)
        except NotTheReporter:
            return self._dropped(answer, "other-reporter")
        except (TableFull, JournalUnavailable) as error:
            raise Overloaded from error
        return self._answer(answer)

    async def _key(self, client: str) -> RunKey | None:
        """Return the run of the pod with an address."""
        pod = await self._addresses.pod(client)
        if pod is None:
            return None
        try:
            return RunKey(pod["metadata"]["namespace"], await self._attribution.run_of_pod(pod))
        except NotAttributed:
            return None
        except ClusterError as error:
            raise Overloaded from error

    def _apply(self, key: RunKey, alias: str, document: Mapping[str, Any]) -> None:
        workload = document.get("workload")
        state = workload.get("state") if isinstance(workload, dict) else None
        self._table.apply_peer(
            key,
            alias=alias,
            name=_text(document.get("displayName")),
            phase=_PHASES.get(state) if isinstance(state, str) else None,
            storage=_text(document.get("baseBlobPath"), _MAX_URL),
            received=self._clock(),
        )

    def _answer(self, document: Mapping[str, Any], *, status: int = 200) -> web.Response:
        self._metrics.answered("peer", status)
        return web.Response(status=status, body=orjson.dumps(document), content_type="application/json")

    def _dropped(self, document: Mapping[str, Any], reason: str) -> web.Response:
        self._metrics.peer_dropped(reason)
        return self._answer(document)


def _text(value: object, most: int = _MAX_TEXT) -> str:
    return value[:most].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
