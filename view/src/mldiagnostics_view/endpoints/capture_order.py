"""The body of a request for a capture, checked against the run; pure."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from mldiagnostics_api.ranges import Ranges

from mldiagnostics_view.captures.creation import NOT_CREATED
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.limits import MAX_CAPTURE_MS

if TYPE_CHECKING:
    from mldiagnostics_view.sources.source import RunDetail


ACTIVE: Final = "Active"
_FIELDS: Final = {"orderId", "ranks", "durationMilliseconds"}
_ORDER_ID: Final = re.compile(r"[0-9a-f]{10}")


class CaptureOrder(NamedTuple):
    """The chosen ranks, and the duration."""

    order_id: str
    """Stays the same if the page sends the order again; part of the name of the object."""
    ranks: frozenset[int]
    milliseconds: int


def capture_order(body: bytes) -> CaptureOrder:
    """Parse the body of a request. Raises `RequestProblem`."""
    try:
        document = orjson.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.keys() != _FIELDS:
        raise _bad("body: is not a JSON object with orderId, ranks and durationMilliseconds; reload the page")
    order_id, ranks, milliseconds = document["orderId"], document["ranks"], document["durationMilliseconds"]
    if not isinstance(order_id, str) or not _ORDER_ID.fullmatch(order_id):
        raise _bad("orderId: is not a text of 10 hexadecimal digits; reload the page")
    if not _is_count(milliseconds) or not 1 <= milliseconds <= MAX_CAPTURE_MS:
        raise _bad(f"durationMilliseconds: is not a whole number from 1 to {MAX_CAPTURE_MS}; choose a shorter duration")
    if not isinstance(ranks, list) or not all(_is_count(rank) for rank in ranks):
        raise _bad("ranks: is not a list of numbers; reload the page")
    if not ranks:
        raise _bad("ranks: no host is chosen; choose at least one")
    return CaptureOrder(order_id, frozenset(ranks), milliseconds)


def ranks_to_capture(order: CaptureOrder, run: RunDetail) -> Ranges | None:
    """Return the ranks of a capture; None for all active hosts.

    Raises `RequestProblem` if they cannot be captured.
    """
    if run.row.phase != ACTIVE:
        raise RequestProblem(
            HTTPStatus.CONFLICT, f"The run is not active but {run.row.phase}: there is nothing to capture."
        )
    if not run.hosts:
        raise RequestProblem(
            HTTPStatus.CONFLICT,
            "The hosts of this run are not known: the cluster does not respond, or you may not list pods. "
            f"{NOT_CREATED}; try again.",
        )
    active = frozenset(host.rank for host in run.hosts if host.phase == ACTIVE)
    if gone := sorted(order.ranks - active):
        raise RequestProblem(
            HTTPStatus.CONFLICT, f"ranks: {Ranges.of((rank, rank) for rank in gone)}: not active any more; choose again"
        )
    return None if order.ranks == active else Ranges.of((rank, rank) for rank in order.ranks)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _bad(detail: str) -> RequestProblem:
    return RequestProblem(HTTPStatus.BAD_REQUEST, detail)
