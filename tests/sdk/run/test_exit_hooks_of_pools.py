"""Records of workers of a Pool that start no run are counted in a warning, however the worker ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import list_runs, read_records

if TYPE_CHECKING:
    from support.programs.processes import Programs

POOL = """
import multiprocessing, sys
from mldiagnostics import machinelearning_run, metrics

def start_run():
    {start}

def train(number):
    for step in range(10):
        metrics.record("loss", float(step), step=step)
    return number

if __name__ == "__main__":
    run = machinelearning_run("job", run_workload_id="pool-job", log_system_metrics=False)
    pool = multiprocessing.get_context(sys.argv[1]).Pool(2, start_run)
    print(pool.map(train, range(6)) == list(range(6)))
    {end}
    run.close()
"""
ENDING = """
import logging, multiprocessing, os, signal, sys, threading
from mldiagnostics import metrics

class Terminated(logging.StreamHandler):
    def emit(self, record):
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(1)  # a process that dies of the signal does so before
        super().emit(record)

def train():
    logging.getLogger("mldiagnostics").addHandler(Terminated())
    metrics.record("loss", 1.0)

if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=train)
    child.start()
    child.join()
"""
JOINED, TERMINATED = "pool.close(); pool.join()", "pool.terminate(); pool.join()"
WARNING = re.compile(
    r"^(\d+) records do not belong to a run; start one in \w+PoolWorker-\d+ too, with the run_workload_id of the main "
    r"program$",
    re.MULTILINE,
)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("end", [JOINED, TERMINATED], ids=["joined", "terminated"])
def test_records_of_workers_without_a_run_are_counted(programs: Programs, method: str, end: str) -> None:
    ended = programs.run(POOL.format(start="pass", end=end), method)
    assert (ended.code, ended.out) == (0, "True\n"), ended.err
    assert sum(map(int, WARNING.findall(ended.err))) == 60, ended.err
    assert not list(read_records(programs.storage, programs.the_run().run_id, kinds={"metric"}))


def test_records_of_forked_workers_made_before_any_run_are_counted(programs: Programs) -> None:
    source = POOL.replace("    run = ", "    run = None and ").replace("run.close()", "")
    ended = programs.run(source.format(start="pass", end=TERMINATED), "fork")
    assert (ended.code, ended.out) == (0, "True\n"), ended.err
    assert sum(map(int, WARNING.findall(ended.err))) == 60, ended.err
    assert not list_runs(programs.storage)


def test_a_child_that_is_terminated_while_it_warns_finishes_the_warning(programs: Programs) -> None:
    ended = programs.run(ENDING)
    assert ended.err.startswith("1 record does not belong to a run; start one in ForkProcess-1 too"), ended.err


def test_workers_that_follow_the_advice_record_into_the_run_of_the_main_program(programs: Programs) -> None:
    start = 'machinelearning_run("job", run_workload_id="pool-job", log_system_metrics=False)'
    ended = programs.run(POOL.format(start=start, end=JOINED), "spawn")
    assert (ended.code, ended.out) == (0, "True\n"), ended.err
    assert not WARNING.findall(ended.err)
    assert len(list(read_records(programs.storage, programs.the_run().run_id, kinds={"metric"}))) == 60
