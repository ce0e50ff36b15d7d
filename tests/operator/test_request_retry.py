from __future__ import annotations

import pytest
from mldiagnostics_kube.client.apiserver import (
    ClusterError,
    Conflict,
    NamespaceTerminating,
    RequestRejected,
    Unavailable,
)
from mldiagnostics_operator import request_retry
from mldiagnostics_operator.request_retry import retry_request


class Request:
    """A request that fails with these errors, then succeeds."""

    def __init__(self, *errors: ClusterError) -> None:
        self.errors = [*errors]

    async def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def rejected(status: int) -> RequestRejected:
    return RequestRejected("rejected", status=status)


async def test_an_api_server_that_starts_is_retried() -> None:
    assert (
        await retry_request(Request(Unavailable("down"), rejected(403), rejected(401), Unavailable("down"))) == "done"
    )


@pytest.mark.parametrize(
    "error", [rejected(422), Conflict("exists"), NamespaceTerminating("terminating", status=403)], ids=repr
)
async def test_other_errors_are_raised_at_once(error: ClusterError) -> None:
    request = Request(error, error)
    with pytest.raises(type(error)):
        await retry_request(request)
    assert request.errors == [error]


async def test_a_rejection_that_lasts_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_retry, "FORBIDDEN_S", 0.3)
    request = Request(*(rejected(403) for _ in range(100)))
    with pytest.raises(RequestRejected):
        await retry_request(request)
    assert len(request.errors) < 99
