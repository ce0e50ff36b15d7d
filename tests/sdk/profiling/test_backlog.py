"""Jobs of the backlog run in order, each once, up to the limit of memory."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from mldiagnostics.profiling.backlog import Backlog

PATIENCE_S = 60


def test_the_limit_is_bytes_and_not_the_number_of_jobs() -> None:
    backlog, release = Backlog(1000), threading.Event()
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(backlog.add, 1, lambda: release.wait(PATIENCE_S))
        while not backlog.waiting_bytes:
            pass
        for _ in range(900):
            backlog.add(1, lambda: None)
        assert (backlog.waiting_bytes, backlog.is_full) == (901, False)
        backlog.add(99, lambda: None)
        assert backlog.is_full
        release.set()
        working.result(PATIENCE_S)
    assert (backlog.waiting_bytes, backlog.is_full) == (0, False)


def test_each_job_runs_once_on_one_thread_at_a_time() -> None:
    backlog, together, done, inside, most = Backlog(1), threading.Barrier(8), [], 0, 0

    def job(name: tuple[int, int]) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        done.append(name)
        inside -= 1

    def add_jobs(thread: int) -> None:
        together.wait(PATIENCE_S)
        for number in range(100):
            backlog.add(1, lambda name=(thread, number): job(name))  # type: ignore[misc]

    with ThreadPoolExecutor(8) as threads:
        for each in [threads.submit(add_jobs, thread) for thread in range(8)]:
            each.result(PATIENCE_S)
    assert (most, len(done), backlog.waiting_bytes) == (1, 800, 0)
    for thread in range(8):
        assert [number for by, number in done if by == thread] == list(range(100))
