"""However a process ends, multiplies or is interrupted, its records are in its files: all of them, in order, once."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import decode
from support.records import DEADLINE_S, eventually, lines, program, records_in, run_program

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.pipeline.records import Record

MANY = """
run = begin()
for step in range(1000):
    metrics.record("loss", float(step), step=step)
"""


def by_file(storage: Path) -> dict[str, list[Record]]:
    files = sorted(storage.glob("*/records/*.jsonl"))
    return {file.name: [decode(line) for line in file.read_bytes().splitlines()] for file in files}


def steps(storage: Path) -> list[int | None]:
    return [record.step for record in records_in(storage)]


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("sys.exit(1)", 1),
        ("raise ValueError('boom')", 1),
        ("threading.Thread(target=lambda: 1 / 0).start()", 0),
        ("run.close()", 0),
        ("run.close(); run.close()", 0),
        ("threading.Timer(0.3, lambda: metrics.record('loss', 1.0, step=1000)).start()", 0),
        ("import atexit; atexit.register(lambda: metrics.record('loss', 1.0, step=1000))", 0),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); os.kill(os.getpid(), signal.SIGTERM)", 3),
        ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    ],
)
def test_an_orderly_end_loses_nothing(ending: str, code: int, tmp_path: Path) -> None:
    result = run_program(MANY + ending, tmp_path)
    assert result.returncode == code, result.stderr
    assert steps(tmp_path) == list(range(1001 if "step=1000" in ending else 1000))


def test_a_burst_within_the_bound_loses_nothing(tmp_path: Path) -> None:
    result = run_program(MANY.replace("1000", "100_000") + "run.close(50)", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert steps(tmp_path) == list(range(100_000))


def test_a_killed_process_leaves_its_records_in_order(tmp_path: Path) -> None:
    endless = """
import itertools
begin()
for step in itertools.count():
    metrics.record("loss", float(step), step=step)
    time.sleep(0.001)
"""
    process = program(endless, tmp_path)
    try:
        eventually(lambda: len(lines(tmp_path)) > 100, "records of a process that never flushes")
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE_S)
    [file] = tmp_path.glob("*/records/*.jsonl")
    whole, _, _ = file.read_bytes().rpartition(b"\n")  # the kernel ends a killed process at any page of its write
    written = [record.step for line in whole.splitlines() if (record := decode(line)).kind == "metric"]
    assert written == list(range(len(written)))
    assert len(written) > 90


def test_a_forked_child_writes_its_own_records_to_its_own_file(tmp_path: Path) -> None:
    body = """
run = begin()
metrics.record("parent", 1.0, step=1)
child = os.fork()
metrics.record("child" if child == 0 else "parent", 1.0, step=2)
if child:
    os.waitpid(child, 0)
    metrics.record("parent", 1.0, step=3)
"""
    result = run_program(body, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    files = [
        [(each.name, each.step) for each in records if each.kind == "metric"] for records in by_file(tmp_path).values()
    ]
    assert sorted(files) == [[("child", 2)], [("parent", 1), ("parent", 2), ("parent", 3)]]


def test_a_grandchild_records_as_a_child_does(tmp_path: Path) -> None:
    body = """
run = begin()
if not (child := os.fork()):
    if not (grandchild := os.fork()):
        metrics.record("grandchild", 1.0)
    else:
        os.waitpid(grandchild, 0)
        metrics.record("child", 1.0)
else:
    os.waitpid(child, 0)
"""
    result = run_program(body, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(each.name for each in records_in(tmp_path) if each.kind == "metric") == ["child", "grandchild"]


def test_a_child_may_start_a_run_before_it_has_recorded(tmp_path: Path) -> None:
    body = """
run = begin()
if not (child := os.fork()):
    run.close()
    run = begin()
    metrics.record("child", 1.0)
else:
    os.waitpid(child, 0)
"""
    result = run_program(body, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert [each.name for each in records_in(tmp_path) if each.kind == "metric"] == ["child"]


def test_children_that_record_nothing_have_no_threads_and_no_files(tmp_path: Path) -> None:
    body = """
run = begin()
metrics.record("parent", 1.0)
child = os.fork()
if child == 0:
    os._exit(len(os.listdir("/proc/self/task")))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    result = run_program(body, tmp_path)
    assert (result.stdout, result.stderr) == ("1\n", "")
    assert len(by_file(tmp_path)) == 1


def test_workers_of_multiprocessing_lose_nothing(tmp_path: Path) -> None:
    body = """
import multiprocessing
def work(number):
    for step in range(500):
        metrics.record(f"worker-{number}", 1.0, step=step)
if __name__ == "__main__":
    run = begin()
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=[number]) for number in range(3)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print([worker.exitcode for worker in workers])
"""
    result = run_program(body, tmp_path)
    assert result.stdout.startswith("[0, 0, 0]"), result.stderr
    for number in range(3):
        assert [each.step for each in records_in(tmp_path) if each.name == f"worker-{number}"] == list(range(500))


TERMINATED = """
import multiprocessing
recorder._SIGNAL_TIMEOUT_S = 60
def work(ready, number):
    metrics.record("before", 1.0, step=number)
    for step in range(1000):
        metrics.record("loss", float(step), step=step)
    ready.put(number)
    {act}
context = multiprocessing.get_context("fork")
ready = context.Queue()
run = begin()
children = [context.Process(target=work, args=(ready, number)) for number in range(3)]
for child in children:
    child.start()
for child in children:
    ready.get()
for child in children:
    child.terminate()
for child in children:
    child.join()
print([child.exitcode for child in children])
run.close()
"""
BUSY = {
    "sleeping": "time.sleep(60)",
    "in Python": "while True: pass",
    "in native code": "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)",
}


@pytest.mark.parametrize("act", BUSY.values(), ids=BUSY)
def test_forked_workers_that_are_terminated_lose_nothing(act: str, tmp_path: Path) -> None:
    ended = run_program(TERMINATED.format(act=act), tmp_path)
    assert (ended.stdout, ended.stderr) == ("[-15, -15, -15]\n", "")
    assert len(records_in(tmp_path)) == 3 * 1001


LEFT = """
import multiprocessing
recorder._SIGNAL_TIMEOUT_S = 60
def work(number):
    for step in range(200):
        metrics.record("loss", float(step), step=step)
    return number
if __name__ == "__main__":
    run = begin()
    pool = multiprocessing.get_context("fork").Pool(3)
    assert pool.map(work, range(30), chunksize=1) == list(range(30))
    pool.close()
    {end}
    run.close()
"""
ENDS_OF_POOLS = {"terminated": "pool.terminate(); pool.join()", "joined": "pool.join()", "left": ""}


@pytest.mark.parametrize("end", ENDS_OF_POOLS.values(), ids=ENDS_OF_POOLS)
def test_workers_of_a_pool_that_are_terminated_while_they_close_lose_nothing(end: str, tmp_path: Path) -> None:
    ended = run_program(LEFT.format(end=end), tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(records_in(tmp_path)) == 6000


OWN = {
    "a handler of its own": "signal.signal(signal.SIGTERM, lambda *_: os._exit(7)); {act}",
    "put in later": "{act}; signal.signal(signal.SIGTERM, lambda *_: os._exit(7))",
}


@pytest.mark.parametrize("order", OWN.values(), ids=OWN)
def test_a_childs_own_handler_of_sigterm_stays(order: str, tmp_path: Path) -> None:
    body = f"""
run = begin()
if not (child := os.fork()):
    {order.format(act="metrics.record('loss', 1.0)")}
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
run.close()
"""
    assert run_program(body, tmp_path).stdout == "7\n"


def test_a_grandchild_that_is_terminated_does_not_end_its_parent(tmp_path: Path) -> None:
    body = """
run = begin()
if not (child := os.fork()):
    metrics.record("child", 1.0)
    if not (grandchild := os.fork()):
        time.sleep(60)
        os._exit(9)
    os.kill(grandchild, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == -signal.SIGTERM
    metrics.record("after", 1.0)
    recorder.flush_all(60)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
run.close()
"""
    ended = run_program(body, tmp_path)
    assert (ended.stdout, ended.stderr) == ("0\n", "")
    assert {record.name for record in records_in(tmp_path)} == {"child", "after"}


def test_a_fork_amid_records_of_many_threads_stops_nobody(tmp_path: Path) -> None:
    body = """
run = begin()
stop = threading.Event()
def work(number):
    step = 0
    while not stop.is_set():
        metrics.record(f"thread-{number}", [1.0, 2.0], step=step)
        step += 1
        time.sleep(0.0001)
threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
for thread in threads: thread.start()
for generation in range(20):
    child = os.fork()
    if child == 0:
        metrics.record("child", [1.0, 2.0], step=generation)
        recorder.current().close(30)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
print(run.close(30).complete)
"""
    result = run_program(body, tmp_path)
    assert (result.stdout, result.stderr) == ("True\n", "")
    names = {each.name for each in records_in(tmp_path)}
    assert names == {"child", *(f"thread-{number}" for number in range(4))}
    assert sorted(each.step for each in records_in(tmp_path) if each.name == "child") == list(range(20))  # type: ignore[type-var]
    for number in range(4):
        own = [each.step for each in records_in(tmp_path) if each.name == f"thread-{number}"]
        assert own == list(range(len(own)))


def test_a_signals_handler_may_record_flush_and_close(tmp_path: Path) -> None:
    body = """
run = begin()
def handler(*_):
    metrics.record("handler", [1.0], labels={"a": "b"})
    assert run.flush(30)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001)
for step in range(300):
    metrics.record("main", [1.0], step=step, labels={"a": "b"})
    assert run.flush(30)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(run.close(30).complete)
"""
    result = run_program(body, tmp_path)
    assert (result.stdout, result.stderr) == ("True\n", "")
    assert [each.step for each in records_in(tmp_path) if each.name == "main"] == list(range(300))


def test_records_without_a_run_are_reported_at_exit(tmp_path: Path) -> None:
    result = run_program("metrics.record('loss', 1.0)", tmp_path)
    assert result.returncode == 0
    assert result.stderr == (
        "1 record does not belong to a run; start one with machinelearning_run(name=…) before recording\n"
    )


def test_no_thread_runs_before_or_after_a_pipeline(tmp_path: Path) -> None:
    body = """
metrics.record("loss", 1.0)
print(threading.active_count())
begin().close()
print(threading.active_count())
"""
    result = run_program(body, tmp_path)
    assert (result.stdout, result.stderr) == ("1\n1\n", "")


def test_two_pipelines_of_one_process_share_no_file(tmp_path: Path) -> None:
    body = """
for number in range(2):
    run = begin()
    metrics.record("loss", 1.0, step=number)
    run.close()
"""
    result = run_program(body, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    files = [[each.step for each in records if each.kind == "metric"] for records in by_file(tmp_path).values()]
    assert files == [[0], [1]]


def test_a_failed_storage_delays_records_without_loss(tmp_path: Path) -> None:
    (tmp_path / ("a" * 64)).write_text("in the way of the run")
    body = """
from pathlib import Path
run = begin("jsonl:", "stdout:")
for step in range(100):
    metrics.record("loss", 1.0, step=step)
print(run.flush(0.5))
while not os.path.exists(sys.argv[1] + "/go"): time.sleep(0.01)
(Path(sys.argv[1]) / ("a" * 64)).unlink()
print(run.flush(60))
"""
    process = program(body, tmp_path)
    assert process.stderr is not None
    error = process.stderr.readline()
    (tmp_path / "go").touch()
    stdout, stderr = process.communicate(timeout=2 * DEADLINE_S)
    assert (process.returncode, stderr) == (0, "")
    assert steps(tmp_path) == list(range(100))
    assert [line for line in stdout.splitlines() if not line.startswith("{")] == ["False", "True"]
    assert len([line for line in stdout.splitlines() if line.startswith("{")]) == 100
    assert "cannot store files now" in error
