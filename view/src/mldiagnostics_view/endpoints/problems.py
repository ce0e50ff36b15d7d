"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web
from mldiagnostics.errors import ConfigurationError, MissingExtraError, MLDiagnosticsError, StoreForbidden
from mldiagnostics.runs.session_cache import SessionTooLarge
from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, ClusterError
from mldiagnostics_kube.client.failures import ClusterFailure

from mldiagnostics_view.captures.captures import CaptureUnknown
from mldiagnostics_view.sources.source import RunUnknown
from mldiagnostics_view.xprof.opening import SessionAbsent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


_UNKNOWN: Final = {
    RunUnknown: "This source has no such run; it may have been deleted. Go back to the list of runs.",
    CaptureUnknown: "This run has no such capture; its object may have been deleted.",
}
_INVALID: Final = frozenset({400, 422})
"""Statuses of objects that the resource or an admission webhook rejects."""
_log: Final = logging.getLogger(__name__)


class RequestProblem(Exception):
    """A request that cannot be answered, with a sentence for people."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def problem_response(status: HTTPStatus, detail: str) -> web.Response:
    """Return a problem document."""
    document = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return web.Response(status=status, text=json.dumps(document), content_type="application/problem+json")


@web.middleware
async def problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer errors of handlers with problem documents."""
    try:
        return await handler(request)
    except RequestProblem as problem:
        return problem_response(problem.status, problem.detail)
    except (RunUnknown, CaptureUnknown) as error:
        return problem_response(HTTPStatus.NOT_FOUND, str(error) or _UNKNOWN[type(error)])
    except web.HTTPException as error:
        return problem_response(HTTPStatus(error.status), f"{request.path}: {error.reason}")
    except (MLDiagnosticsError, ClusterError, OSError) as error:
        if isinstance(error, ConnectionError):  # the browser is gone
            raise
        return problem_response(_status_of(error), str(error))
    except Exception:  # noqa: BLE001 - a page needs an answer
        _log.exception("request failed path=%(path)s", {"path": request.path})
        return problem_response(
            HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed; its output has the reason. Reload the page."
        )


def _status_of(error: Exception) -> HTTPStatus:
    match error:
        case SessionAbsent():
            return HTTPStatus.NOT_FOUND
        case SessionTooLarge():
            return HTTPStatus.INSUFFICIENT_STORAGE
        case StoreForbidden():
            return HTTPStatus.FORBIDDEN
        case ClusterFailure(status=status):
            refusal = HTTPStatus.FORBIDDEN if status in NOT_PERMITTED else HTTPStatus.BAD_GATEWAY
            return HTTPStatus.UNPROCESSABLE_ENTITY if status in _INVALID else refusal
        case ConfigurationError() | MissingExtraError():
            return HTTPStatus.BAD_REQUEST
        case _:
            return HTTPStatus.BAD_GATEWAY
