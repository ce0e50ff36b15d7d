"""Goodput events that a run records automatically, in real processes."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics.runs import goodput, list_runs, read_records

if TYPE_CHECKING:
    from support.programs.processes import Programs
    from support.servers.emulator import Emulator

BEGIN = """
import os, sys, threading, time
from mldiagnostics import machinelearning_run
from mldiagnostics.run import closing
closing.SIGNAL_TIMEOUT_S = 60
run = machinelearning_run("job", run_workload_id="job", log_system_metrics=False)
"""
WRITTEN = """
from pathlib import Path
while not any("step_start_time" in file.read_text() for file in Path(run.directory).glob("records/*.jsonl")):
    time.sleep(0.01)
"""


def goodput_events(programs: Programs) -> list[tuple[str, object]]:
    """Return the keys of times in the records of the only run, with their steps."""
    keys = []
    for record in read_records(programs.storage, "job", kinds={"event"}):
        if record.name == "goodput" and record.payload is not None:
            *beside, (key, _) = ((k, v) for k, v in record.payload.items() if k not in {"job_name", "event_id"})
            keys.append((key, beside[0][1] if beside else None))
    return keys


def test_start_steps_and_end_are_recorded_automatically(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nfor _ in range(3): run.step()\nrun.step(10)")
    assert (ended.code, ended.out) == (0, ""), ended.err
    steps = [("step_start_time", step) for step in (0, 1, 2, 10)]
    assert goodput_events(programs) == [("job_start_time", None), *steps, ("job_end_time", None)]


def test_a_run_without_steps_records_none(programs: Programs) -> None:
    programs.run(BEGIN)
    assert goodput_events(programs) == [("job_start_time", None), ("job_end_time", None)]


def test_a_clock_that_is_set_after_the_last_event_is_recorded_before_the_next_heartbeat(programs: Programs) -> None:
    """Heartbeats and the last phase have the new time; a failed run has no event at its end."""
    with_clock = "import time\nreal, ahead = time.time, [0.0]\ntime.time = lambda: real() + ahead[0]\n"
    programs.run(f"{with_clock}{BEGIN}\nrun.step(7)\nahead[0] = -3600.0\nrun.close('FAILED')")
    assert [key for key, _ in goodput_events(programs)] == ["job_start_time", "step_start_time", "clock_step_time"]
    [row] = list_runs(programs.storage)
    report = goodput(row)
    assert report is not None
    assert 0 < report.cumulative.elapsed_s < 600


@pytest.mark.parametrize(
    "end",
    [
        "raise ValueError('diverged')",
        "sys.exit(3)",
        "import signal; os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
        "run.close('FAILED')",
        f"{WRITTEN}os._exit(1)",
    ],
)
def test_a_run_that_breaks_off_has_no_end(programs: Programs, end: str) -> None:
    programs.run(f"{BEGIN}\nrun.step(5)\n{end}")
    assert goodput_events(programs) == [("job_start_time", None), ("step_start_time", 5)]


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("raise ValueError('diverged')", "exception"),
        ("sys.exit(3)", "exit code"),
        ("import signal; os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", "signal"),
        ("run.recorder.record_disruption('cosmic ray'); run.close('FAILED')", "cosmic ray"),
    ],
)
def test_the_next_attempt_shows_why_the_last_one_broke_off(programs: Programs, end: str, cause: str) -> None:
    programs.run(f"{BEGIN}\nfor step in range(3): run.step(step)\ntime.sleep(1.2)\n{end}")
    programs.run(f"{BEGIN}\nfor step in range(1, 4): run.step(step)")
    history, now = History(), datetime.now(timezone.utc)
    open_log(f"{programs.storage}/job").read_new(history, now)
    moment = round(now.timestamp() * 1e6)
    [disruption] = history.of(moment).disruptions(moment)
    assert (disruption.cause, disruption.steps_lost) == (cause, 1)
    account = history.of(moment).account(moment)
    assert (account.max_step, account.productive + sum(account.unproductive.values())) == (3, account.elapsed)


@pytest.mark.parametrize("act", ["sys.exit(1)", "os._exit(0)"])
def test_a_handler_of_sigterm_does_not_hide_the_cause(programs: Programs, act: str) -> None:
    handler = f"import os, signal, sys; signal.signal(signal.SIGTERM, lambda *_: {act})"
    end = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)"
    programs.run(f"{handler}\n{BEGIN}\nfor step in range(3): run.step(step)\ntime.sleep(1.2)\n{end}")
    programs.run(f"{BEGIN}\nfor step in range(1, 4): run.step(step)")
    history, now = History(), datetime.now(timezone.utc)
    open_log(f"{programs.storage}/job").read_new(history, now)
    moment = round(now.timestamp() * 1e6)
    [disruption] = history.of(moment).disruptions(moment)
    assert disruption.cause == "signal"


def test_a_repeated_step_is_the_same_step(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nfor step in (3, 3, 4, 3): run.step(step)\nrun.close()\nrun.step(9)")
    assert "do not belong to a run" not in ended.err
    steps = [("step_start_time", step) for step in (3, 4, 3)]
    assert goodput_events(programs) == [("job_start_time", None), *steps, ("job_end_time", None)]


def test_arguments_that_a_step_does_not_have_are_reported_once_and_ignored(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nfor _ in range(2):\n    run.step(5, 6)\n    run.step(num=7, loss=0.1)")
    hints = [
        "run.step: too many positional arguments, the last 1 ignored; the parameters are number",
        "run.step: unknown parameters 'loss', 'num' are ignored; did you mean 'number'?",
    ]
    assert (ended.code, ended.err.splitlines()[1:]) == (0, hints)
    steps = [("step_start_time", step) for step in (5, 6, 5, 6)]
    assert goodput_events(programs) == [("job_start_time", None), *steps, ("job_end_time", None)]


def test_other_ranks_record_only_explicit_events(programs: Programs) -> None:
    body = f"{BEGIN}\nrun.step(0)\nwith run.recorder.checkpoint_save(0): pass"
    ended = programs.run(body, env={"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"})
    assert ended.code == 0, ended.err
    assert goodput_events(programs) == [("checkpoint_save_start_time", 0), ("checkpoint_save_end_time", 0)]


def test_a_child_that_trains_for_its_parent_records_its_steps(programs: Programs) -> None:
    body = f"""{BEGIN}
if os.fork() == 0:
    run.step(0)
    run.step(1)
    run.close()
    os._exit(0)
os.wait()
"""
    ended = programs.run(body)
    assert ended.code == 0, ended.err
    steps = [("step_start_time", step) for step in (0, 1)]
    assert sorted(goodput_events(programs)) == sorted([("job_start_time", None), *steps, ("job_end_time", None)])


EVALUATED = """
import multiprocessing, os, signal, subprocess, sys
from mldiagnostics import machinelearning_run

def evaluate():
    with machinelearning_run("eval", run_workload_id="job", log_system_metrics=False):
        pass

def evaluate_in_child(kind):
    if kind == "subprocess":
        subprocess.run([sys.executable, __file__, "evaluate", ""], check=True)
        return
    child = multiprocessing.get_context(kind).Process(target=evaluate)
    child.start()
    child.join()
    assert child.exitcode == 0

if __name__ == "__main__":
    kind, end = sys.argv[1:]
    if kind == "evaluate":
        evaluate()
        sys.exit()
    run = machinelearning_run("job", run_workload_id="job", log_system_metrics=False)
    for step in range(6):
        run.step(step)
        if step == 2:
            evaluate_in_child(kind)
    run.recorder.flush()
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["ends", "killed"])
@pytest.mark.parametrize("kind", ["subprocess", "spawn", "fork"])
def test_a_child_with_a_run_of_its_own_is_not_an_attempt(programs: Programs, kind: str, end: str) -> None:
    ended = programs.run(EVALUATED, kind, end)
    assert ended.code == (-9 if end == "killed" else 0), ended.err
    steps = [("step_start_time", step) for step in range(6)]
    last = [] if end == "killed" else [("job_end_time", None)]
    assert goodput_events(programs) == [("job_start_time", None), *steps, *last]
    history, now = History(), datetime.now(timezone.utc)
    open_log(f"{programs.storage}/job").read_new(history, now)
    moment = round(now.timestamp() * 1e6)
    account = history.of(moment).account(moment)
    assert (account.disruptions, account.last_step) == (0, 5)


def test_a_subprocess_that_trains_for_its_launcher_records_its_steps(programs: Programs) -> None:
    body = f"""{BEGIN}
import subprocess
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "train"], check=True)
else:
    run.step(0)
    run.step(1)
"""
    ended = programs.run(body)
    assert ended.code == 0, ended.err
    steps = [("step_start_time", step) for step in (0, 1)]
    assert sorted(goodput_events(programs)) == sorted([("job_start_time", None), *steps, ("job_end_time", None)])


@pytest.mark.peers
def test_compilations_of_a_subprocess_are_not_of_the_run(programs: Programs) -> None:
    body = f"""{BEGIN}
import subprocess
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "compile"], check=True)
else:
    import jax
    run.step(0)
    jax.jit(lambda x: x + 1)(1.0)
"""
    ended = programs.run(body, env={"JAX_PLATFORMS": "cpu"})
    assert ended.code == 0, ended.err
    steps = [("step_start_time", 0)]
    assert sorted(goodput_events(programs)) == sorted([("job_start_time", None), *steps, ("job_end_time", None)])


def test_goodput_events_are_stored_with_the_run_only(programs: Programs) -> None:
    body = f"""{BEGIN}
with run.recorder.event("EVAL"):
    run.recorder.record_elastic_slice_counts(1, 2, 1)
    run.recorder.flush()
print(os.listdir(sys.argv[1]))
"""
    ended = programs.run(body, programs.storage)
    assert (ended.code, ended.out) == (0, "['job']\n"), ended.err
    assert [key for key, _ in goodput_events(programs)] == [
        "job_start_time",
        "custom_badput_event_start_time",
        "elastic_slice_counts_timestamp",
        "custom_badput_event_end_time",
        "job_end_time",
    ]


def test_each_run_of_a_process_has_its_own_account(programs: Programs) -> None:
    programs.run(
        """
from mldiagnostics import machinelearning_run
for name in ("one", "two"):
    with machinelearning_run(name, run_workload_id=name, log_system_metrics=False) as run:
        run.step(len(name))
        with run.recorder.event(name): pass
"""
    )
    for name in ("one", "two"):
        events = [r.payload for r in read_records(programs.storage, name, kinds={"event"}) if r.name == "goodput"]
        assert [each["job_name"] for each in events if each] == [name] * 5


def test_a_second_run_starts_after_the_end_of_the_first(programs: Programs) -> None:
    again = 'machinelearning_run("job", run_workload_id="job", log_system_metrics=False)'
    programs.run(f"{BEGIN}\nrun.step(0)\n{again}.step(1)")
    moments = [
        (value, key)
        for record in read_records(programs.storage, "job", kinds={"event"})
        for key, value in (record.payload or {}).items()
        if key.endswith("_time")
    ]
    life = ["job_start_time", "step_start_time", "job_end_time"]
    assert [key for _, key in sorted(moments)] == life * 2


def test_the_goodput_of_a_run_is_read_from_a_bucket_as_from_a_disk(
    programs: Programs, gcs_emulator: Emulator, gcs_bucket: str
) -> None:
    storage = f"gs://{gcs_bucket}/runs"
    there = {
        "MLDIAG_STORAGE": storage,
        "STORAGE_EMULATOR_HOST": gcs_emulator.url,
        "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true",
    }
    ended = programs.run(f"{BEGIN}\nfor _ in range(5): run.step()", env=there)
    assert ended.code == 0, ended.err
    goodput_events = programs.run(
        "from mldiagnostics.goodput.__main__ import main; main()", f"{storage}/job", "-o", "json", env=there
    )
    assert goodput_events.code == 0, goodput_events.err
    assert json.loads(goodput_events.out)["cumulative"]["max_step"] == 4


def test_a_run_that_cannot_be_recorded_accounts_for_nothing_and_works(programs: Programs) -> None:
    ended = programs.run(
        """
import os
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
from mldiagnostics import machinelearning_run
run = machinelearning_run("job", storage="here")
run.step(1)
with run.recorder.event("EVAL"): print("trained")
run.recorder.flush()
run.close()
"""
    )
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    assert list_runs(programs.storage) == []


def test_a_fast_loop_prints_no_steps(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nfor _ in range(2000): run.step()", env={"MLDIAG_SINKS": "stdout:"})
    assert {json.loads(line)["name"] for line in ended.out.splitlines()} <= {
        "Active",
        "Completed",
        "alive",
        "configs",
        "segment",
    }
    assert len(ended.out.splitlines()) < 20
