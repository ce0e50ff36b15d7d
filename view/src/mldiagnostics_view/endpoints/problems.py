"""Errors as problem documents (RFC 9457)."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web
from mldiagnostics.errors import ConfigurationError, MissingExtraError, MLDiagnosticsError, StoreForbidden
from mldiagnostics_kube.apiserver import NOT_PERMITTED, ClusterError
from mldiagnostics_kube.failures import ClusterFailure

from mldiagnostics_view.sources.source import RunUnknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["RequestProblem", "problem_response", "problems"]

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
    except RunUnknown as error:
        reason = "This source has no such run; it may have been deleted. Go back to the list of runs."
        return problem_response(HTTPStatus.NOT_FOUND, str(error) or reason)
    except web.HTTPException as error:
        return problem_response(HTTPStatus(error.status), f"{request.path}: {error.reason}")
    except StoreForbidden as error:
        return problem_response(HTTPStatus.FORBIDDEN, str(error))
    except ClusterFailure as error:
        is_refusal = error.status in NOT_PERMITTED
        return problem_response(HTTPStatus.FORBIDDEN if is_refusal else HTTPStatus.BAD_GATEWAY, str(error))
    except (ConfigurationError, MissingExtraError) as error:
        return problem_response(HTTPStatus.BAD_REQUEST, str(error))
    except (MLDiagnosticsError, ClusterError, OSError) as error:
        if isinstance(error, ConnectionError):  # the browser is gone
            raise
        return problem_response(HTTPStatus.BAD_GATEWAY, str(error))
    except Exception:  # noqa: BLE001 - a page needs an answer
        _log.exception("request failed path=%s", request.path)
        return problem_response(
            HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed; its output has the reason. Reload the page."
        )
