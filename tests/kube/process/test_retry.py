from __future__ import annotations

import asyncio

import pytest
from mldiagnostics_kube.process.retry import FIRST_PAUSE_S, retry


class Fault(Exception):
    """A temporary failure."""


class Fails:
    """A call that fails some times, then succeeds."""

    def __init__(self, times: int, error: type[Exception] = Fault) -> None:
        self.left = times
        self.error = error
        self.tried_at: list[float] = []

    async def __call__(self) -> str:
        self.tried_at.append(asyncio.get_running_loop().time())
        if self.left:
            self.left -= 1
            raise self.error(f"{self.left} left")
        return "done"


async def test_a_temporary_failure_is_retried() -> None:
    assert await retry(Fails(2), on=Fault) == "done"


async def test_the_last_failure_is_raised_at_the_deadline() -> None:
    call, until = Fails(1000), asyncio.get_running_loop().time() + 0.5
    with pytest.raises(Fault):
        await retry(call, on=Fault, until=until)
    pauses = [FIRST_PAUSE_S * 2**number for number, _ in enumerate(call.tried_at)]
    for pause, before, after in zip(pauses, call.tried_at, call.tried_at[1:], strict=False):
        assert after - before > 0.49 * pause, "it presses"
    assert call.tried_at[-1] + 1.5 * pauses[-1] > until, "it could have tried again"


async def test_a_deadline_in_the_past_allows_one_attempt() -> None:
    call = Fails(1000)
    with pytest.raises(Fault):
        await retry(call, on=Fault, until=asyncio.get_running_loop().time())
    assert call.left == 999


async def test_other_failures_are_raised_at_once() -> None:
    with pytest.raises(KeyError):
        await retry(Fails(1, KeyError), on=Fault)
