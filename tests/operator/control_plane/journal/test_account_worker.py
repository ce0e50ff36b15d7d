from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
import uvloop
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.log.packed import packed_line
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane.journal import account_program
from mldiagnostics_operator.control_plane.journal.account_program import MAX_BUCKETS
from mldiagnostics_operator.control_plane.journal.account_worker import AccountFailed, AccountWorker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

START_US = 1_790_000_000_000_000
UNTIL_S = START_US / 1e6 + 3600
JOURNAL_BYTES = 2**20
DEADLINE_S = 60
HONEST, HOSTILE = RunKey("honest", "a" * 64), RunKey("hostile", "b" * 64)


def journal(folder: Path, key: RunKey, *lists: list[object]) -> str:
    """Write a journal of some lists of packed items; return its directory."""
    place = folder / key.namespace
    (place / "records").mkdir(parents=True)
    lines, first = bytearray(), 0
    for items in lists:
        text = json.dumps(items, separators=(",", ":"))[1:-1].encode()
        lines += packed_line(text, first=first, run=key.run_id, incarnation="0" * 8, rank=0, attempt=0)
        first += len(items)
    (place / "records" / "00000000-0.jsonl").write_bytes(lines)
    return str(place)


def steps(number: int) -> list[object]:
    """Return a job with steps of a second."""
    return [[START_US, EventCode.JOB_START, 0, 0, ""], [1, EventCode.STEP_START, 0], *[1_000_000] * (number - 1)]


def attempts(number: int, second: int) -> list[object]:
    """Return steps that go back all the time: each is an attempt."""
    begin = [START_US + second * 1_000_000, EventCode.JOB_START, 0, 0, ""]
    return [begin, *([1, EventCode.STEP_START, number - each] for each in range(number))]


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[AccountWorker]:
    made = AccountWorker(tmp_path, JOURNAL_BYTES)
    yield made
    await made.aclose()


def custom_event(each: int) -> str:
    return f"{each:05}{'X' * 140}"


def custom_events(numbers: range) -> list[object]:
    """Return custom events of distinct types, one a second; each takes a microsecond more than the one before."""
    begin = [START_US + (1 + numbers[0]) * 2_000_000, EventCode.STEP_START, numbers[0], 0, ""]
    kinds = [(each, custom_event(each)) for each in numbers]
    pairs = [([1_000_000, EventCode.CUSTOM_START, kind], [each, EventCode.CUSTOM_END, kind]) for each, kind in kinds]
    return [begin, *(event for pair in pairs for event in pair)]


async def last_step(worker: AccountWorker, key: RunKey, place: str) -> int | None:
    account, _ = await worker.account(key, place, UNTIL_S, ends_with_events=False, finished=False)
    return account.last_step if account else None


async def test_a_journal_that_takes_all_memory_ends_its_own_account_alone(
    worker: AccountWorker, tmp_path: Path
) -> None:
    honest = journal(tmp_path, HONEST, steps(100))
    hostile = journal(tmp_path, HOSTILE, *(attempts(40_000, second) for second in range(5)))
    assert await last_step(worker, HONEST, honest) == 99
    with pytest.raises(AccountFailed, match="more memory than 129 MiB") as failure:
        await last_step(worker, HOSTILE, hostile)
    assert failure.value.exceeds
    assert await last_step(worker, HONEST, honest) == 99


async def test_a_journal_that_takes_too_long_is_given_up(
    worker: AccountWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = journal(tmp_path, HONEST, steps(100))
    monkeypatch.setattr("mldiagnostics_operator.control_plane.journal.account_worker.ACCOUNT_DEADLINE_S", 0.0)
    with pytest.raises(AccountFailed, match="longer than 0 s") as failure:
        await last_step(worker, HONEST, honest)
    assert failure.value.exceeds
    monkeypatch.undo()
    assert await last_step(worker, HONEST, honest) == 99


async def test_a_process_that_was_killed_is_started_again(worker: AccountWorker, tmp_path: Path) -> None:
    honest = journal(tmp_path, HONEST, steps(100))
    assert await last_step(worker, HONEST, honest) == 99
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(AccountFailed, match="its process ended, -9"):
        await last_step(worker, HONEST, honest)
    assert await last_step(worker, HONEST, honest) == 99


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_process_that_ended_between_two_accounts_costs_none(
    tmp_path: Path, make_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    honest = journal(tmp_path, HONEST, steps(100))

    async def last_step_after_kill() -> int | None:
        worker = AccountWorker(tmp_path, JOURNAL_BYTES)
        try:
            await last_step(worker, HONEST, honest)
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            async with asyncio.timeout(DEADLINE_S):
                while worker.is_running:
                    worker.forget(HONEST)
                    await asyncio.sleep(0.01)
            worker.forget(HONEST)
            return await last_step(worker, HONEST, honest)
        finally:
            await worker.aclose()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(last_step_after_kill()) == 99


async def test_the_start_of_the_process_is_not_a_part_of_the_account(
    worker: AccountWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_start_s = 0.5
    (tmp_path / "sitecustomize.py").write_text(f"import time; time.sleep({slow_start_s})")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    honest = journal(tmp_path, HONEST, steps(100))
    start_s = time.monotonic()
    _, spent_s = await worker.account(HONEST, honest, UNTIL_S, ends_with_events=False, finished=False)
    assert 0 < spent_s <= time.monotonic() - start_s - slow_start_s


async def test_a_run_without_a_journal_has_no_account_and_links_are_not_followed(
    worker: AccountWorker, tmp_path: Path
) -> None:
    assert await last_step(worker, HONEST, str(tmp_path / "absent")) is None
    (tmp_path / "link").symlink_to(journal(tmp_path, HONEST, steps(100)))
    assert await last_step(worker, HONEST, str(tmp_path / "link")) is None
    assert await last_step(worker, HONEST, str(tmp_path / HONEST.namespace)) == 99
    worker.forget(HONEST)
    assert await last_step(worker, HONEST, str(tmp_path / HONEST.namespace)) == 99


async def test_custom_types_beyond_the_largest_ones_are_one_bucket(worker: AccountWorker, tmp_path: Path) -> None:
    number, until_s = 9000, START_US / 1e6 + 86_400
    events = (custom_events(range(first, first + 500)) for first in range(0, number, 500))
    hostile = journal(tmp_path, HOSTILE, steps(1), *events)
    account, _ = await worker.account(HOSTILE, hostile, until_s, ends_with_events=True, finished=False)
    assert account
    assert len(account.unproductive) <= MAX_BUCKETS
    assert f"CUSTOM_BADPUT_EVENTS.{custom_event(number - 2)}" in account.unproductive
    assert account.productive + sum(account.unproductive.values()) == pytest.approx(account.elapsed, abs=1e-6)


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("answer", ["'x' * 3_000_000", "'{'", "'[]'", "'5'", "'{}'", '\'{"goodput":5,"seconds":1}\''])
def test_an_answer_that_is_too_long_or_invalid_ends_its_own_account_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_loop: Callable[[], asyncio.AbstractEventLoop], answer: str
) -> None:
    honest = journal(tmp_path, HONEST, steps(100))
    (tmp_path / "invalid_answers.py").write_text(f"while True: input(); print({answer}, flush=True)")

    async def last_step_after_failure() -> int | None:
        worker = AccountWorker(tmp_path, JOURNAL_BYTES)
        try:
            with monkeypatch.context() as patched:
                patched.setenv("PYTHONPATH", str(tmp_path))
                patched.setattr(account_program, "__name__", "invalid_answers")
                with pytest.raises(AccountFailed) as failure:
                    await last_step(worker, HONEST, honest)
            assert failure.value.exceeds
            return await last_step(worker, HONEST, honest)
        finally:
            await worker.aclose()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(last_step_after_failure()) == 99
