"""Claims on the process's profiler."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from mldiagnostics.profiling.claim import claim, queue
from mldiagnostics.profiling.recorder import Busy


def test_a_second_claim_is_rejected_with_the_holders_name() -> None:
    held = claim("an on-demand capture")
    try:
        with pytest.raises(Busy, match="an on-demand capture is recording this process"):
            claim("a profile")
    finally:
        held.release()
    claim("a profile").release()


def test_a_second_release_does_not_release_the_next_claim() -> None:
    first = claim("first")
    first.release()
    second = claim("second")
    first.release()
    with pytest.raises(Busy, match="second"):
        claim("third")
    second.release()


def test_a_claim_does_not_wait_for_a_recording() -> None:
    held = claim("a profile")
    with pytest.raises(Busy, match="already profiling: a profile is recording this process"):
        queue("another profile")
    held.release()


def test_a_claim_during_the_collection_of_a_trace_is_next() -> None:
    held = claim("first")
    held.collect()
    with pytest.raises(Busy, match="still being collected"):
        claim("one that cannot wait")
    second = queue("second")
    assert not second.wait(0)
    with pytest.raises(Busy, match="second"):
        queue("third")
    with ThreadPoolExecutor(1) as thread:
        turn = thread.submit(second.wait, None)
        held.release()
        assert turn.result(60)
    with pytest.raises(Busy, match="second"):
        claim("third")
    second.release()
    claim("third").release()


def test_a_withdrawn_claim_leaves_its_turn_to_another() -> None:
    held = claim("first")
    held.collect()
    second = queue("second")
    with ThreadPoolExecutor(1) as thread:
        turn = thread.submit(second.wait, None)
        second.withdraw()
        assert not turn.result(60)
    third = queue("third")
    held.release()
    assert third.wait(0)
    third.withdraw()
    assert third.wait(0), "it was its turn already"
    third.release()


def test_concurrent_claims_get_their_turns_one_by_one() -> None:
    together, inside, most, recorded = threading.Barrier(8), 0, 0, 0

    def record() -> None:
        nonlocal inside, most, recorded
        together.wait(60)
        for _ in range(200):
            try:
                held = queue("one of many")
            except Busy:
                continue
            if held.wait(60):
                inside += 1
                most = max(most, inside)
                inside -= 1
                recorded += 1
                held.collect()
            held.release()

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(record) for _ in range(8)]:
            done.result(60)
    assert most == 1
    assert recorded


FORK = """
import os
from mldiagnostics.profiling.claim import claim
held = claim("the parent")
child = os.fork()
if child == 0:
    status = 1
    try:
        claim("the child").release()
        status = 0
    finally:
        os._exit(status)
held.release()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_can_record_while_its_parent_does() -> None:
    ended = subprocess.run([sys.executable, "-c", FORK], check=True, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "0\n"
