"""The log has each event once, for any number of processes of a job and any end of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.pipeline.records import decode
from support.goodput.logs import events_in, lines, log_of, program, run_program
from support.records import DEADLINE_S, eventually

if TYPE_CHECKING:
    from pathlib import Path

ENDLESS = """
import itertools
recorder = begin()
for step in itertools.count():
    recorder.record_step_start_time(step)
    print(step, time.time(), flush=True)
    time.sleep(0.002)
"""


def test_killed_processes_lose_at_most_their_last_second(tmp_path: Path) -> None:
    processes = [program(ENDLESS, tmp_path, MLDIAG_RANK=str(rank)) for rank in range(4)]
    try:
        eventually(lambda: len(list(log_of(tmp_path).glob("records/*"))) == 4, "all four have begun")
        eventually(lambda: len(lines(log_of(tmp_path))) > 1000, "they have recorded much")
    finally:
        for process in processes:
            process.kill()
    outputs = [process.communicate(timeout=DEADLINE_S)[0].splitlines() for process in processes]
    events = events_in(log_of(tmp_path)).events
    for rank, recorded in enumerate(outputs):
        whole = [line.split() for line in recorded if line.count(" ") == 1]
        written = [event.arg for event in events if event.rank == rank]
        assert written == list(range(len(written)))
        last, moment = whole[-1]
        lost_since = next((float(t) for step, t in whole if int(step) >= len(written)), float(moment))
        assert float(moment) - lost_since < 5.0, f"rank {rank} recorded {last} steps"  # 1 s where the machine is free


def test_an_orderly_end_loses_nothing(tmp_path: Path) -> None:
    body = """
recorder = begin()
with recorder.job():
    for step in range(5000):
        with recorder.step(step):
            pass
"""
    assert run_program(body, tmp_path) == ("", "")
    assert sorted(events_in(log_of(tmp_path)).steps()) == list(range(5000))


def test_a_forked_child_tells_in_a_file_of_its_own(tmp_path: Path) -> None:
    body = """
import warnings
warnings.simplefilter("ignore")
early, late = begin("early"), begin("late")
early.record_step_start_time(0)
early.flush()
if not (child := os.fork()):
    early.record_step_start_time(1)
    late.record_step_start_time(1)
    early.close()
    late.close()
    os._exit(0)
os.waitpid(child, 0)
early.record_step_start_time(2)
late.record_step_start_time(2)
"""
    assert run_program(body, tmp_path)[1] == ""
    for job, steps in (("early", [0, 1, 2]), ("late", [1, 2])):
        assert sorted(events_in(log_of(tmp_path, job)).steps()) == steps
        assert len(list(log_of(tmp_path, job).glob("records/*"))) == 2


def test_workers_of_multiprocessing_that_record_themselves_lose_nothing(tmp_path: Path) -> None:
    body = """
import multiprocessing
made = begin("made")
def work():
    recorder = begin()
    for step in range(500):
        recorder.record_step_start_time(step)
        made.record_step_start_time(step)
worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
worker.join()
"""
    assert run_program(body, tmp_path) == ("", "")
    assert events_in(log_of(tmp_path)).steps() == events_in(log_of(tmp_path, "made")).steps() == list(range(500))


def test_a_full_disk_costs_neither_events_nor_whose_they_are(tmp_path: Path) -> None:
    body = """
import resource
from mldiagnostics import diagnostics
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
recorder = begin()
recorder.record_step_start_time(1)
while not any(key.startswith("sink-unavailable") for key in diagnostics.counts()):
    time.sleep(0.01)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
recorder.record_step_start_time(2)
"""
    run_program(body, tmp_path, MLDIAG_RANK="3", MLDIAG_RUN_ID="f" * 64)
    recorded = [(event.arg, event.rank, event.run) for event in events_in(log_of(tmp_path)).events]
    assert recorded == [(1, 3, "f" * 64), (2, 3, "f" * 64)]


def test_a_process_finds_the_log_that_it_writes_whichever_runs_begin_and_end(tmp_path: Path) -> None:
    body = """
from mldiagnostics import machinelearning_run
from mldiagnostics.goodput.log import find_log
early, late = begin("early"), begin("late")
early.record_job_start_time()
with machinelearning_run("run", gcs_path="storage", log_system_metrics=False):
    late.record_job_start_time()
    early.flush()
print(find_log("early", "goodput_job"), find_log("late", "goodput_job"), find_log("late", "other"), sep="\\n")
"""
    out, _ = run_program(body, tmp_path, MLDIAG_GOODPUT_LOG="")
    early, late, other = out.splitlines()
    assert early == f"{tmp_path}/mldiagnostics/goodput/goodput_job/early"
    assert late == f"{tmp_path}/storage/goodput/goodput_job/late"
    assert other == f"{tmp_path}/mldiagnostics/goodput/other/late"
    assert events_in(early).pairs == events_in(late).pairs


def test_events_of_many_threads_have_ids_of_their_own(tmp_path: Path) -> None:
    body = """
recorder = begin()
def work(number):
    for step in range(number, 4000, 8):
        recorder.record_step_start_time(step)
threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
recorder.close()
"""
    run_program(body, tmp_path)
    assert sorted(events_in(log_of(tmp_path)).steps()) == list(range(4000))
    ids = [line.rpartition(b'"event_id":"')[2] for line in lines(log_of(tmp_path)) if b"event_id" in line]
    assert len(set(ids)) == len(ids) == 4000


def test_the_log_of_the_run_is_the_runs_own_records(tmp_path: Path) -> None:
    body = """
from mldiagnostics import machinelearning_run
run = machinelearning_run("run", log_system_metrics=False)
recorder, beside = begin(log=run.directory), begin()
recorder.record_custom_badput_event_start_time()
beside.record_custom_badput_event_start_time()
recorder.close()
beside.close()
run.close()
print(run.directory)
"""
    out, _ = run_program(body, tmp_path, MLDIAG_STORAGE=str(tmp_path / "storage"), MLDIAG_GOODPUT_LOG="")
    directory = out.strip().splitlines()[-1]
    events = events_in(directory).events
    assert [event.arg for event in events if isinstance(event.arg, str)] == ["UNKNOWN"]
    assert {event.run for event in events} == {directory.rpartition("/")[2]}
    assert [event.run for event in events_in(tmp_path / "storage/goodput/goodput_job/job").events] == [""]


def test_the_log_of_a_run_goes_on_when_the_run_is_over(tmp_path: Path) -> None:
    body = """
from mldiagnostics import machinelearning_run
for name in ("first", "second"):
    with machinelearning_run(name, gcs_path="storage", log_system_metrics=False) as run:
        recorder = begin(log=run.directory)
        recorder.record_custom_badput_event_start_time(custom_badput_event_type=name)
    recorder.flush()
    recorder.record_custom_badput_event_end_time(custom_badput_event_type=name)
    print(run.directory)
"""
    out, _ = run_program(body, tmp_path)
    for name, directory in zip(("FIRST", "SECOND"), out.splitlines(), strict=True):
        events = [event for event in events_in(directory).events if isinstance(event.arg, str)]
        assert [(event.code, event.arg) for event in events] == [
            (EventCode.CUSTOM_START, name),
            (EventCode.CUSTOM_END, name),
        ]
        assert {event.run for event in events} == {directory.rpartition("/")[2]}


def test_an_exit_does_not_wait_for_what_is_closed(tmp_path: Path) -> None:
    body = """
from mldiagnostics.goodput.recording import log_writer
from mldiagnostics.goodput import written_logs
log_writer.FLUSH_TIMEOUT_S = 3600
recorder = begin()
recorder.record_job_start_time()
written_logs._close_logs()
recorder.flush()
"""
    assert run_program(body, tmp_path) == ("", "")


def test_what_a_handler_of_the_exit_records_is_in_the_log(tmp_path: Path) -> None:
    body = """
import atexit
recorder = begin()
atexit.register(recorder.record_job_end_time)
recorder.record_job_start_time()
"""
    assert run_program(body, tmp_path) == ("", "")
    assert sorted(events_in(log_of(tmp_path)).pairs) == [(EventCode.JOB_START, 0), (EventCode.JOB_END, 0)]


def test_importing_and_making_a_recorder_loads_little(tmp_path: Path) -> None:
    body = """
begin()
print(*({"json", "dataclasses", "mldiagnostics.pipeline.recorder", "mldiagnostics.goodput.log"} & set(sys.modules)))
print(threading.active_count())
"""
    assert run_program(body, tmp_path) == ("\n1\n", "")


SLOW_TO_OPEN = """
import threading
go_on = threading.Event()

class Slow:
    def find_spec(self, name, *_):
        if name == "mldiagnostics.goodput.log.writing":
            assert go_on.wait(30), "the recorder waits for its log"

sys.meta_path.insert(0, Slow())
recorder = begin()
for step in range(3):
    recorder.record_step_start_time(step)
recorded = time.time()
"""
ENDS_OF_OPENING = {
    "flushed": "go_on.set(); recorder.flush()",
    "closed": "go_on.set(); recorder.close()",
    "left at the exit": "go_on.set()",
    "opened at the exit": "import atexit; atexit.register(go_on.set)",
    "forked meanwhile": """
import warnings
from mldiagnostics.goodput.recording import log_writer
log_writer._FORK_TIMEOUT_S = 60
warnings.simplefilter("ignore")
threading.Timer(0.2, go_on.set).start()
if not os.fork():
    recorder.record_step_start_time(3)
    recorder.close()
    os._exit(0)
assert os.wait()[1] == 0
""",
}


@pytest.mark.parametrize("end", ENDS_OF_OPENING.values(), ids=ENDS_OF_OPENING)
def test_events_do_not_wait_for_the_log_to_open_and_none_is_lost(tmp_path: Path, end: str) -> None:
    body = f"{SLOW_TO_OPEN}\n{end}\nprint(recorded)"
    out, err = run_program(body, tmp_path)
    assert err == ""
    records = [record for record in map(decode, lines(log_of(tmp_path))) if record.name == "goodput"]
    assert sorted(events_in(log_of(tmp_path)).steps()) == list(range(4 if "fork" in end else 3))
    assert sum(record.t <= float(out) for record in records) == 3, "each has the time of its call"


def test_the_log_has_the_place_that_the_first_event_gives(tmp_path: Path) -> None:
    body = f"""
{SLOW_TO_OPEN}
os.environ["MLDIAG_GOODPUT_LOG"] = os.getcwd() + "/elsewhere"
os.chdir("/")
go_on.set()
"""
    run_program(body, tmp_path)
    assert sorted(events_in(log_of(tmp_path)).steps()) == [0, 1, 2]


def test_a_log_that_cannot_be_written_now_is_written_later(tmp_path: Path) -> None:
    log_of(tmp_path).parent.mkdir(parents=True)
    log_of(tmp_path).write_text("in the way")
    body = f"""
recorder = begin()
from mldiagnostics import diagnostics
recorder.record_step_start_time(1)
while not any(key.startswith("spool ") for key in diagnostics.counts()):
    time.sleep(0.01)
os.unlink({str(log_of(tmp_path))!r})
recorder.record_step_start_time(2)
"""
    _, err = run_program(body, tmp_path)
    assert events_in(log_of(tmp_path)).steps() == [1, 2]
    assert err.count("cannot store files now") == 1


def test_without_an_extra_its_name_is_said_once_and_the_training_goes_on(tmp_path: Path) -> None:
    body = """
from mldiagnostics.goodput.log import open_log
from mldiagnostics.errors import MissingExtraError
for log in ("cloud-logging://project", "gs://bucket/log"):
    recorder = begin(log=log)
    recorder.record_job_start_time()
    recorder.record_step_start_time(1)
    recorder.close()
for log in ("cloud-logging://project/logger/job", "gs://bucket/log"):
    try:
        open_log(log).read_new(None, datetime.now(timezone.utc))
    except MissingExtraError as error:
        print(error.extra)
"""
    out, err = run_program(body, tmp_path, options=("-S",))
    assert out == "cloud-logging\ngcs\n"
    assert (
        "goodput of job job: nothing is recorded: cloud-logging://project/goodput_job/job "
        "needs the extra 'cloud-logging': " in err
    )
    assert err.count("pip install './sdk[cloud-logging]'") == 1


@pytest.mark.parametrize(("place", "warnings"), [("", 1), ("/tmp/logs", 0)])
def test_a_log_that_ends_with_its_pod_is_reported(tmp_path: Path, place: str, warnings: int) -> None:
    body = "for job in ('job', 'other'): begin(job, log=tmp or None).record_job_start_time()"
    folder = f"import os; tmp = {place!r} and os.getcwd() + {place!r}\n"
    _, err = run_program(folder + body, tmp_path, MLDIAG_GOODPUT_LOG="", KUBERNETES_SERVICE_HOST="10.0.0.1")
    assert err.count("ends with the pod") == warnings
