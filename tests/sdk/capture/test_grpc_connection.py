"""Servers that break the rules of HTTP/2 and gRPC: each fails by itself, soon, and with its own reason."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest
from mldiagnostics.capture.budget import ByteBudget
from mldiagnostics.capture.deadline import Deadline
from mldiagnostics.capture.engine import run
from mldiagnostics.capture.http2 import FrameFlag, FrameKind, frame, header_block
from mldiagnostics.capture.model import Options, Outcome, Reason, Target
from mldiagnostics.store import Stored
from support.servers import profiler_servers as servers
from support.servers import raw_profilers as raw
from support.servers.profiler_servers import FakeProfiler

QUICK = Options(session="s1", duration_ms=50, deadline_s=60, answer_timeout_s=60)
MEBIBYTE = 1024 * 1024


async def keep(target: Target, trace: memoryview) -> Stored:
    return Stored(target.stem, len(trace), f"memory:{target.stem}", str)


async def captured(
    ports: list[int], options: Options = QUICK, *, budget: ByteBudget | None = None, tenant: str = ""
) -> list[Outcome]:
    targets = [Target("127.0.0.1", port, f"host-{number}") for number, port in enumerate(ports)]
    async with aclosing(run(targets, options, sink=keep, budget=budget, tenant=tenant)) as outcomes:
        return [outcome async for outcome in outcomes]


ANSWERS = {
    "compressed": (
        raw.sending(raw.headers, lambda stream: frame(FrameKind.DATA, stream=stream, payload=b"\1\0\0\0\x09")),
        Reason.SERVER_ERROR,
        "compressed",
    ),
    "more than granted": (
        raw.sending(raw.headers, lambda stream: frame(FrameKind.DATA, stream=stream, payload=bytes(9999))),
        Reason.CONNECTION_LOST,
        "does not speak HTTP/2 correctly",
    ),
    "longer than announced": (
        raw.sending(
            raw.headers, lambda stream: frame(FrameKind.DATA, stream=stream, payload=raw.prefix(1) + b"too long")
        ),
        Reason.SERVER_ERROR,
        "longer than its message",
    ),
    "shorter than announced": (
        raw.sending(
            raw.headers,
            lambda stream: frame(FrameKind.DATA, stream=stream, payload=raw.prefix(9) + b"short"),
            lambda stream: raw.status(stream, 0),
        ),
        Reason.SERVER_ERROR,
        "ended before its message",
    ),
    "announced 4 GiB": (
        raw.sending(raw.headers, lambda stream: frame(FrameKind.DATA, stream=stream, payload=raw.prefix(2**32 - 1))),
        Reason.TRACE_TOO_LARGE,
        "4294967295 bytes",
    ),
    "pings without end": (
        raw.flooding(lambda _: frame(FrameKind.PING, payload=bytes(8))),
        Reason.CONNECTION_LOST,
        "control frames",
    ),
    "empty content without end": (
        raw.flooding(lambda stream: frame(FrameKind.DATA, stream=stream)),
        Reason.CONNECTION_LOST,
        "control frames",
    ),
    "headers without end": (
        raw.sending(
            lambda stream: frame(FrameKind.HEADERS, stream=stream, payload=bytes(16_000)),
            *[lambda stream: frame(FrameKind.CONTINUATION, stream=stream, payload=bytes(16_000))] * 8,
        ),
        Reason.CONNECTION_LOST,
        "",
    ),
    "large headers in few bytes": (
        raw.sending(
            lambda stream: frame(
                FrameKind.HEADERS,
                flags=FrameFlag.END_HEADERS,
                stream=stream,
                payload=b"\x40" + header_block([(b"a", b"b" * 4000)])[1:] + b"\xbe" * 10_000,
            )
        ),
        Reason.CONNECTION_LOST,
        "does not speak HTTP/2 correctly",
    ),
    "a status of control characters": (
        raw.sending(lambda stream: raw.status(stream, 13, b"%1B[2J%E2%80%AEevil%00" + b"x" * 5000)),
        Reason.SERVER_ERROR,
        r"\x1b[2J\u202eevil\x00xxx",
    ),
    "reset": (
        raw.sending(lambda stream: frame(FrameKind.RST_STREAM, stream=stream, payload=bytes(4))),
        Reason.SERVER_ERROR,
        "reset",
    ),
    "goodbye": (
        raw.sending(lambda _: frame(FrameKind.GOAWAY, payload=bytes(8))),
        Reason.CONNECTION_LOST,
        "closed the connection",
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_a_server_that_breaks_the_rules_fails_with_a_reason(case: str) -> None:
    answer, reason, part = ANSWERS[case]
    async with raw.raw_profiler(answer) as port:
        (outcome,) = await captured([port])
    assert (outcome.reason, part in outcome.message) == (reason, True), outcome.message
    assert outcome.message.isprintable()
    assert len(outcome.message) < 700


async def test_slow_servers_of_a_tenant_do_not_delay_another_and_fail_soon() -> None:
    budget, good = ByteBudget(), FakeProfiler()
    good.reply = servers.replying(servers.answer(servers.trace(padding=MEBIBYTE)))
    async with raw.raw_profiler(raw.dripping(20 * MEBIBYTE)) as slow, good.serving():
        attack = asyncio.create_task(captured([slow] * 17, budget=budget, tenant="slow"))
        while budget.used_bytes < budget.largest_bytes - 20 * MEBIBYTE:  # noqa: ASYNC110 - the budget has no event
            await asyncio.sleep(0.01)
        (victim,) = await captured([good.port], budget=budget, tenant="victim")
        assert not attack.done()
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)
        (dropped,) = await captured([slow], replace(QUICK, answer_timeout_s=2), budget=budget, tenant="slow")
    assert (victim.reason, victim.message) == (Reason.CAPTURED, "")
    assert dropped.reason is Reason.SLOW
    assert "sent less than 512 KiB of its trace in 2 s" in dropped.message
    assert budget.used_bytes == 0


async def test_a_trace_that_never_gets_memory_says_so() -> None:
    budget, good = ByteBudget(), FakeProfiler()
    good.reply = servers.replying(servers.answer(servers.trace(padding=20 * MEBIBYTE)))
    held = await budget.reserve(budget.largest_bytes, "other", Deadline(60))
    async with good.serving():
        (outcome,) = await captured([good.port], replace(QUICK, deadline_s=10), budget=budget)
    assert outcome.reason is Reason.INSUFFICIENT_MEMORY
    assert "recorded but not read" in outcome.message
    held.release()
    assert budget.used_bytes == 0
