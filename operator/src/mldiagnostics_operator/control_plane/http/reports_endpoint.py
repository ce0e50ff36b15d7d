"""`POST /v1/runs/{runId}/reports`: from a request to the table, and to its answer."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web
from mldiagnostics_api.reports.models import MAX_COMPRESSED_BYTES, RUN_ID_PATTERN, InvalidReport
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_kube.serving.rates import RateLimits

from mldiagnostics_operator.control_plane.http import bodies
from mldiagnostics_operator.control_plane.http.bodies import InvalidBody
from mldiagnostics_operator.control_plane.http.intake import extras_of, misses_events
from mldiagnostics_operator.control_plane.http.problems import problem
from mldiagnostics_operator.control_plane.identity.attribution import NotAttributed
from mldiagnostics_operator.control_plane.identity.authentication import Unauthenticated
from mldiagnostics_operator.control_plane.identity.lookups import Overloaded
from mldiagnostics_operator.control_plane.journal.journal import JournalUnavailable
from mldiagnostics_operator.control_plane.limits import (
    MAX_TOKENS,
    REPORTS_BURST,
    REPORTS_PER_SECOND,
    RETRY_AFTER_S,
    WAITING_BODIES,
)
from mldiagnostics_operator.control_plane.memory.table import NotTheReporter, TableFull
from mldiagnostics_operator.control_plane.slices import sliced
from mldiagnostics_operator.fair_slots import FairSlots

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.reports.models import Phase
    from mldiagnostics_kube.serving.bounded_server import Respond

    from mldiagnostics_operator.control_plane.identity.attribution import Attribution
    from mldiagnostics_operator.control_plane.identity.authentication import Authenticator
    from mldiagnostics_operator.control_plane.identity.sender import Sender
    from mldiagnostics_operator.control_plane.journal.journal import Journal
    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.control_plane.telemetry import ControlPlaneMetrics

_PATH: Final = re.compile(r"/v1/runs/([^/?]+)/reports")
_RUN_ID: Final = re.compile(RUN_ID_PATTERN)
_JSON: Final = "application/json"


class _Head(NamedTuple):
    """The parts of a request's head that are used."""

    run_id: str
    authorization: str
    encoding: str
    client: str


class _Refused(Exception):
    """An answer of status 400 or above."""

    def __init__(self, status: int, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.retry_after_s = status, retry_after_s


class ReportsEndpoint:
    """Serves the reports of SDKs.

    Work is done in the order of its cost: the head, the rate of the token, authentication, attribution, the body. So a
    client without a valid token costs nothing but its bounded body and its turn at a look-up.
    """

    def __init__(
        self,
        *,
        table: ReportTable,
        journal: Journal,
        authenticator: Authenticator,
        attribution: Attribution,
        metrics: ControlPlaneMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._table = table
        self._journal = journal
        self._authenticator = authenticator
        self._attribution = attribution
        self._metrics = metrics
        self._clock = clock
        self._turns = FairSlots(1, per_namespace=1)
        """Large bodies: their work would add up in the loop."""
        self._waiting = Counter[str]()
        self._rates = RateLimits(REPORTS_PER_SECOND, REPORTS_BURST, most=MAX_TOKENS)

    def route(self, request: web.BaseRequest) -> Respond | web.Response:
        """Read the head of a request; return its handler, or a response at once."""
        path = _PATH.fullmatch(request.path)
        if path is None:
            return self._problem(404, f"{request.path[:200]}: no such path; send reports to /v1/runs/<run id>/reports")
        if request.method != "POST":
            return self._problem(405, f"{request.method[:20]}: not allowed here; use POST")
        if request.content_type != _JSON:
            return self._problem(415, f"Content-Type: {request.content_type[:50]!r} is not {_JSON}; send JSON")
        if (request.content_length or 0) > MAX_COMPRESSED_BYTES:
            return self._problem(413, f"body: has more than {MAX_COMPRESSED_BYTES} bytes; send fewer events at a time")
        head = _Head(
            path[1],
            request.headers.get("Authorization", ""),
            request.headers.get("Content-Encoding", ""),
            request.remote or "",
        )
        return lambda body: self._respond(head, body)

    async def _respond(self, head: _Head, body: bytes) -> web.Response:
        start = self._clock()
        try:
            key, sender = await self._identify(head)
            response = await self._report(key, sender, bodies.Encoded(body, head.encoding), start)
        except _Refused as refused:
            return self._problem(refused.status, str(refused), retry_after_s=refused.retry_after_s)
        self._metrics.answered("reports", response.status)
        return response

    async def _identify(self, head: _Head) -> tuple[RunKey, Sender]:
        """Return the run that the sender may write."""
        run_id = head.run_id
        if not _RUN_ID.fullmatch(run_id):
            raise _Refused(404, f"run id: {run_id[:100]!r} is not valid; use lower-case letters, digits and ._-")
        try:
            sender = await self._authenticator.sender(head.authorization, head.client)
            client = (sender.namespace, sender.account, sender.pod_uid or head.client)
            wait_s = self._rates.take(client, self._clock())
            if wait_s:
                raise _Refused(429, "reports: this client sends too many; send one every 10 s", retry_after_s=wait_s)
            if sender.pod_uid:
                own = await self._attribution.run_of(sender)
                if own != run_id:
                    raise _Refused(
                        403, f"run {run_id}: pod {sender.namespace}/{sender.pod} belongs to run {own}; report that one"
                    )
            key = RunKey(sender.namespace, run_id)
            if self._table.owner(key) is None:
                await self._journal.recall(key, sender.owner)
        except Unauthenticated as error:
            raise _Refused(401, str(error)) from error
        except NotAttributed as error:
            raise _Refused(403, str(error)) from error
        except (Overloaded, JournalUnavailable) as error:
            raise _Refused(503, str(error), retry_after_s=RETRY_AFTER_S) from error
        return key, sender

    async def _report(self, key: RunKey, sender: Sender, body: bodies.Encoded, start: float) -> web.Response:
        """Apply a report, and answer what is persisted."""
        try:
            incarnation, phase = await self._take(key, sender, body)
        except InvalidBody as error:
            raise _Refused(error.status, str(error)) from error
        except InvalidReport as error:
            raise _Refused(422, str(error)) from error
        except NotTheReporter as error:
            raise _Refused(403, str(error)) from error
        except TableFull as error:
            self._metrics.limited(key.namespace)
            raise _Refused(429, str(error), retry_after_s=RETRY_AFTER_S) from error
        except JournalUnavailable as error:
            raise _Refused(503, str(error), retry_after_s=RETRY_AFTER_S) from error
        self._metrics.report_took(self._clock() - start)
        if phase != "Active":
            await self._journal.flush(key)
        answer = self._table.answer(key, incarnation)
        return web.Response(text=answer.model_dump_json(by_alias=True), content_type=_JSON)

    async def _take(self, key: RunKey, sender: Sender, body: bodies.Encoded) -> tuple[str, Phase]:
        """Read a body and apply it: a small one at once, a larger one in its turn."""
        text = bodies.expanded_inline(body)
        if text is not None:
            return await self._apply(key, sender, text)
        if self._waiting[key.namespace] >= WAITING_BODIES:
            raise TableFull(f"namespace {key.namespace}: too many of its large reports wait; try again later")
        self._waiting[key.namespace] += 1
        try:
            async with self._turns.slot(key.namespace):
                return await self._apply(key, sender, await sliced(bodies.expanded(body)))
        finally:
            self._waiting[key.namespace] -= 1
            if not self._waiting[key.namespace]:
                del self._waiting[key.namespace]

    async def _apply(self, key: RunKey, sender: Sender, text: bytes) -> tuple[str, Phase]:
        body = bodies.parse(text)
        report = body.report
        self._table.require_room(key, report)
        if misses_events(self._table, key, body):
            await self._journal.recall(key, sender.owner)  # another leader may have persisted them
        extras = await sliced(extras_of(self._table, key, body))
        self._table.apply(key, report, sender, self._clock(), extras)
        if extras.events is not None and not extras.events.whole:
            self._metrics.limited(key.namespace)
        return report.incarnation, report.phase

    def _problem(self, status: int, message: str, *, retry_after_s: float = 0.0) -> web.Response:
        self._metrics.answered("reports", status)
        return problem(status, message, retry_after_s=retry_after_s)
