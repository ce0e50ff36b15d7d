"""Requests that are repeated while the API server cannot answer them yet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, NamespaceTerminating, RequestRejected, Unavailable
from mldiagnostics_kube.process.retry import retry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

FORBIDDEN_S: Final = 10.0
"""How long a 401 or 403 counts as temporary: an API server that starts rejects requests until it has read the roles."""


async def retry_request(call: Callable[[], Awaitable[T]]) -> T:
    """Await `call()` until the API server is available and permits it.

    Args:
        call: Starts one attempt.

    Returns:
        The result of the first attempt that succeeds.

    Raises:
        ClusterError: The request failed for good; a 401 or 403 only after `FORBIDDEN_S`.
    """
    clock = asyncio.get_running_loop().time
    forbidden_since: float | None = None

    async def attempt() -> T:
        nonlocal forbidden_since
        try:
            return await call()
        except NamespaceTerminating:
            raise
        except RequestRejected as rejection:
            forbidden_since = clock() if forbidden_since is None else forbidden_since
            if rejection.status not in NOT_PERMITTED or clock() - forbidden_since >= FORBIDDEN_S:
                raise
            raise Unavailable(str(rejection), status=rejection.status) from rejection
        except Unavailable:
            forbidden_since = None
            raise

    return await retry(attempt, on=Unavailable)
