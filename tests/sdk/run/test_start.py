"""Starts of runs in real processes: problems are reported once and training continues."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import list_runs, read_records

if TYPE_CHECKING:
    from support.programs.processes import Programs

BEGIN = """
from mldiagnostics import machinelearning_run, metrics
"""
TRAIN = """
for step in range(3):
    run.step()
    metrics.record("loss", 1.0 / (step + 1), step=step)
print("trained")
"""


def recorded(storage: str, run_id: str) -> list[tuple[str, object]]:
    """Return what the program recorded: system metrics have labels."""
    records = read_records(storage, run_id, kinds={"metric"})
    return [(record.name, record.value) for record in records if not record.labels]


def test_a_run_leaves_what_a_reader_needs(programs: Programs) -> None:
    source = f"""{BEGIN}
run = machinelearning_run("my run", "sweep-7", {{"lr": 0.1, "model": {{"layers": 2}}, "api_key": "x"}},
                          framework="pytorch", region="us-central1-a", project="p")
assert (run.display_name, run.run_group, run.location, run.project) == ("my run", "sweep-7", "us-central1", "p")
assert run.name == run.run_id == run.directory.rpartition("/")[2]
{TRAIN}
run.configs.update({{"batch": 4}})
run.configs.userConfigs.lr = 0.2
"""
    ended = programs.run(source, env={"MLDIAG_VIEW_URL": "https://view/"})
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    row = programs.the_run()
    assert (row.name, row.run_group, row.phase, row.step, row.attempt) == ("my run", "sweep-7", "Completed", 2, 0)
    assert row.configs["user"] == {"lr": 0.2, "model": {"layers": 2}, "api_key": "<secret>", "batch": 4}
    assert row.configs["software"]["framework"] == "PYTORCH"
    assert recorded(programs.storage, row.run_id) == [("loss", 1.0), ("loss", 0.5), ("loss", 1.0 / 3)]
    assert re.fullmatch(
        rf"mldiagnostics: run 'my run' began: id {row.run_id} \(from: fresh\), files in {row.directory}, "
        rf"look at it with https://view/{row.run_id}\n",
        ended.err,
    )
    [*_, last] = read_records(programs.storage, row.run_id, kinds={"config"})
    assert last.payload == row.configs


def test_the_line_at_start_says_how_to_look(programs: Programs) -> None:
    hidden = "import sys\nsys.modules['mldiagnostics_cli'] = None"
    ended = programs.run(f"{hidden}\n{BEGIN}\nmachinelearning_run('job')\n")
    command = shlex.split(ended.err.strip().rpartition("look at it with ")[2])
    shown = programs.run(
        f"import runpy, sys\nsys.argv = {command[2:]!r}\nrunpy.run_module('{command[2]}', run_name='__main__')"
    )
    assert programs.the_run().run_id[:16] in shown.out, shown.err


def test_the_line_at_start_names_the_view_where_it_is_installed(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nmachinelearning_run('job')\n")
    assert ended.err.strip().endswith(f", look at it with mldiag view {shlex.quote(str(programs.storage))}")


WRONG = {
    "name": "name=7",
    "no name": "",
    "configs": "name='x', configs=object()",
    "region": "name='x', region='nowhere'",
    "framework": "name='x', framework='COBOL'",
    "environment": "name='x', environment='moon'",
    "storage": "name='x', storage='ftp://bucket'",
    "sink": "name='x', sinks=['carrier-pigeon:']",
    "sinks": "name='x', sinks=5",
    "unknown": "name='x', colour='blue'",
    "flag": "name='x', on_demand_xprof='yes'",
    "exporter": "name='x', metrics_exporter_config={'mode': ['smoke']}",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_argument_is_reported_once_and_training_continues(programs: Programs, wrong: str) -> None:
    source = f"{BEGIN}\nfor _ in range(2):\n    run = machinelearning_run({WRONG[wrong]})\n{TRAIN}"
    env = {"HOME": str(programs.folder)}
    ended = programs.run(source, env=env)
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    lines = [line for line in ended.err.splitlines() if not line.startswith("mldiagnostics: run ")]
    assert len(lines) == 1, ended.err
    storage = str(programs.folder / "mldiagnostics") if wrong == "storage" else programs.storage
    assert {row.phase for row in list_runs(storage)} == {"Completed"}


STRICT = """
import threading
from mldiagnostics import MLDiagnosticsError, MLRunConfigurationError
for wrong in {wrong!r}:
    try:
        eval(f"machinelearning_run({{wrong}}strict=True)")
    except MLRunConfigurationError as error:
        assert isinstance(error, (MLDiagnosticsError, ValueError))
        assert str(error), wrong
    else:
        raise AssertionError(wrong)
    assert threading.active_count() == 1, wrong
"""


def test_strict_raises_before_anything_starts(programs: Programs) -> None:
    ended = programs.run(BEGIN + STRICT.format(wrong=[f"{wrong}, " if wrong else "" for wrong in WRONG.values()]))
    assert ended.code == 0, ended.err
    assert list_runs(programs.storage) == []


@pytest.mark.parametrize(
    "arguments", ["name='x', storage='gs://bucket/runs'", "name='x', sinks=['tensorboard:/tmp/x']"]
)
def test_strictly_a_missing_extra_is_named(programs: Programs, arguments: str) -> None:
    source = f"""{BEGIN}
import mldiagnostics
try:
    machinelearning_run({arguments}, strict=True)
except mldiagnostics.MissingExtraError as error:
    print(error.extra)
except mldiagnostics.MLRunConfigurationError as error:
    print(error)
"""
    ended = replace(programs, options=("-S",)).run(source)  # without the environment's packages
    assert ended.code == 0, ended.err
    assert "gcs" in ended.out or "tensorboard" in ended.out


HARMLESS = """
run.step("seven")
run.step(None)
run.on_step(lambda step: 1 / 0)
run.step(5)
run.configs.update(5)
run.configs = {"a": 1}
run.publish("section", {"a": object()})
run.warn_once("key", "message")
run.step(float("inf"))
run.close(phase=object(), timeout_s="soon")
run.close()
run.step(6)
run.configs.update({"b": 1})
run.configs.c.d if hasattr(run.configs, "c") else None
metrics.record("loss", object())
with run:
    pass
repr(run)
"""


def test_wrong_calls_in_any_order_are_harmless(programs: Programs) -> None:
    ended = programs.run(f"{BEGIN}\nmetrics.record('early', 1.0)\nrun = machinelearning_run('job')\n{HARMLESS}")
    assert ended.code == 0, ended.err
    assert recorded(programs.storage, programs.the_run().run_id) == [("early", 1.0)]


def test_configurations_over_the_limit_keep_their_small_values(programs: Programs) -> None:
    ended = programs.run(f"""{BEGIN}
run = machinelearning_run("x", configs={{"lr": 0.1, "vocabulary": ["w" * 100] * 1000}}, log_system_metrics=False)
""")
    row = programs.the_run()
    assert row.configs["user"] == {"lr": 0.1, "vocabulary": "<left out: 100026 bytes>"}
    [*_, last] = read_records(programs.storage, row.run_id, kinds={"config"})
    assert last.payload == row.configs
    assert ended.err.count("configs: more than 64 KiB, vocabulary left out") == 1
    assert "may have 4 KiB" not in ended.err


def test_a_step_that_is_not_whole_is_refused(programs: Programs) -> None:
    ended = programs.run(f"""{BEGIN}
run = machinelearning_run("x", log_system_metrics=False)
for number in (1, 2.0, "3", 3.5, None, [4], float("nan")):
    run.step(number)
    metrics.record("loss", 0.5, step=number)
""")
    row = programs.the_run()
    assert row.step == 4
    assert [record.step for record in read_records(programs.storage, row.run_id, kinds={"metric"})][:4] == [
        1,
        2,
        None,
        None,
    ]
    assert ended.err.count("run.step(3.5) is ignored") == 1
    assert ended.err.count("without its step") == 1


def test_every_rank_leaves_its_last_step_and_the_time_of_a_step(programs: Programs) -> None:
    source = f"""{BEGIN}
import os
with machinelearning_run("x", log_system_metrics=False) as run:
    for step in range(5 if os.environ["RANK"] == "0" else 9):
        run.step(step)
"""
    for rank in ("1", "0"):
        ended = programs.run(source, env={"MLDIAG_RUN_ID": "shared", "RANK": rank, "WORLD_SIZE": "2"})
        assert ended.code == 0, ended.err
    assert (programs.the_run().step, programs.the_run().step_time_s is not None) == (4, True)
    ends = [each for each in read_records(programs.storage, "shared", kinds={"phase"}) if each.name == "Completed"]
    assert {end.rank: end.step for end in ends} == {0: 4, 1: 8}
    assert all(end.payload["stepTimeSeconds"] > 0 for end in ends if end.payload)  # type: ignore[operator]


def test_without_steps_of_the_program_those_of_its_metrics_count(programs: Programs) -> None:
    programs.run(f"""{BEGIN}
run = machinelearning_run("x", log_system_metrics=False)
for step in range(43):
    metrics.record("loss", 0.5, step=step)
run.recording.flush(60)
""")
    assert programs.the_run().step == 42


def test_late_changes_of_configurations_are_reported(programs: Programs) -> None:
    ended = programs.run(f"""{BEGIN}
run = machinelearning_run("job")
run.on_close(lambda: run.configs.update({{"last": 1}}))
run.close()
for number in range(3):
    run.configs.update({{"late": number}})
""")
    assert programs.the_run().configs["user"] == {"last": 1}
    assert ended.err.count("changed after close() and not recorded") == 1, ended.err


def test_changes_while_a_run_closes_are_in_its_records_and_in_its_file_or_in_none(programs: Programs) -> None:
    ended = programs.run(f"""{BEGIN}
import itertools, threading
run = machinelearning_run("job", log_system_metrics=False)
ended = threading.Event()
def change():
    for number in itertools.count():
        run.configs.update({{"number": number}})
        if ended.is_set():
            return
changing = threading.Thread(target=change)
changing.start()
run.close()
ended.set()
changing.join()
""")
    assert ended.code == 0, ended.err
    row = programs.the_run()
    [*_, last] = read_records(programs.storage, row.run_id, kinds={"config"})
    assert last.payload == row.configs


BROKEN = """
import threading, _thread
from mldiagnostics import machinelearning_run, metrics
def refuse(*arguments, **keywords):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
run = machinelearning_run("job")
"""


def test_after_a_start_that_failed_every_call_is_harmless(programs: Programs) -> None:
    ended = programs.run(BROKEN + HARMLESS + TRAIN)
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    assert "is not recorded" in ended.err


def test_a_second_run_closes_the_first(programs: Programs) -> None:
    source = f"""{BEGIN}
first = machinelearning_run("first")
metrics.record("a", 1.0)
second = machinelearning_run("second")
metrics.record("b", 2.0)
assert first.closed and not second.closed
from mldiagnostics.run import current
assert current() is second
"""
    ended = programs.run(source)
    assert ended.code == 0, ended.err
    rows = {row.name: row for row in list_runs(programs.storage)}
    assert {name: row.phase for name, row in rows.items()} == {"first": "Completed", "second": "Completed"}
    assert recorded(programs.storage, rows["first"].run_id) == [("a", 1.0)]
    assert recorded(programs.storage, rows["second"].run_id) == [("b", 2.0)]


SWEEP = """
import os
from mldiagnostics import machinelearning_run
for name in ("small", "large", "large", "small"):
    if "OWN_IDS" in os.environ:
        os.environ["MLDIAG_RUN_ID"] = name
    machinelearning_run(name, log_system_metrics=False).close()
"""


@pytest.mark.parametrize("source", ["injected", "own ids", "shared by the program"])
def test_runs_that_share_an_injected_id_under_two_names_are_reported_once(programs: Programs, source: str) -> None:
    env = {
        "injected": {"MLDIAG_RUN_ID": "ab" * 32},
        "own ids": {"MLDIAG_RUN_ID": "ab" * 32, "OWN_IDS": "yes"},
        "shared by the program": {"RUN_WORKLOAD_ID": "sweep"},
    }[source]
    ended = programs.run(SWEEP, env=env)
    assert ended.code == 0, ended.err
    warning = "machinelearning_run('large'): has the injected run id of 'small'"
    assert ended.err.count("injected run id") == ended.err.count(warning) == (source == "injected"), ended.err
    assert ("set MLDIAG_RUN_ID to another id" in ended.err) is (source == "injected")
    assert len(list_runs(programs.storage)) == (2 if source == "own ids" else 1)


def test_runs_started_concurrently_follow_each_other(programs: Programs) -> None:
    source = f"""{BEGIN}
import threading
barrier = threading.Barrier(4)
def begin(number):
    barrier.wait()
    machinelearning_run(f"job-{{number}}")
threads = [threading.Thread(target=begin, args=[number]) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    ended = programs.run(source)
    assert ended.code == 0, ended.err
    assert sorted((row.name, row.phase) for row in list_runs(programs.storage)) == [
        (f"job-{number}", "Completed") for number in range(4)
    ]


def test_a_copy_is_the_run_and_a_pickle_the_run_of_who_reads_it(programs: Programs) -> None:
    source = f"""{BEGIN}
import copy, pickle, subprocess, sys
run = machinelearning_run("job")
assert copy.copy(run) is run and copy.deepcopy({{"run": run}})["run"] is run
assert pickle.loads(pickle.dumps(run)) is run
there = "import pickle, sys; run = pickle.load(sys.stdin.buffer); run.step(); print(run.display_name, run.close())"
subprocess.run([sys.executable, "-c", there], input=pickle.dumps(run), check=True)
"""
    ended = programs.run(source)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("job CloseSummary(written={}"), ended.out
    assert programs.the_run().phase == "Completed"


def test_a_restart_continues_the_run(programs: Programs) -> None:
    for attempt, statement in enumerate(["sys.exit(1)", "pass"]):
        env = {"MLDIAG_RUN_ID": "same", "MLDIAG_ATTEMPT": str(attempt)}
        source = f"import sys{BEGIN}\nrun = machinelearning_run('job')\n{TRAIN}\n{statement}\n"
        programs.run(source, env=env)
    row = programs.the_run()
    assert (row.run_id, row.attempt, row.phase) == ("same", 1, "Completed")
    assert [(past["attempt"], past["phase"]) for past in row.document["attempts"]] == [(0, "Failed")]
    assert {record.attempt for record in read_records(programs.storage, "same")} == {0, 1}


SAMPLED = """
import pathlib, threading, time
run = machinelearning_run("job", metrics_record_interval_sec={interval}, log_system_metrics={wanted})
print("mldiagnostics-system" in [thread.name for thread in threading.enumerate()])
deadline = time.monotonic() + 60
while {wait} and time.monotonic() < deadline:
    if any("host_cpu_utilization" in path.read_text() for path in pathlib.Path(run.directory).rglob("*.jsonl")):
        break
    time.sleep(0.05)
"""


@pytest.mark.parametrize(("interval", "wanted"), [(0.1, True), (10, False), (0, True)])
def test_system_metrics_are_on_by_default_and_can_be_turned_off(
    programs: Programs, interval: float, *, wanted: bool
) -> None:
    on = wanted and interval > 0
    ended = programs.run(BEGIN + SAMPLED.format(interval=interval, wanted=wanted, wait=on))
    assert (ended.code, ended.out) == (0, f"{on}\n"), ended.err
    names = {record.name for record in read_records(programs.storage, programs.the_run().run_id, kinds={"metric"})}
    assert ("host_cpu_utilization" in names) == on


PLACES = {
    "under a file": "storage.write_text('in the way')",
    "not to be made": "os.environ['MLDIAG_STORAGE'] = '/proc/mldiagnostics'",
    "full": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_failed_storage_is_reported_once_and_training_continues(programs: Programs, place: str) -> None:
    prepare = f"import os, pathlib\nstorage = pathlib.Path({programs.storage!r})\n{PLACES[place]}"
    ended = programs.run(f"{BEGIN}\n{prepare}\nrun = machinelearning_run('job')\n{TRAIN}\nrun.close()\nrun.close()")
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    assert ended.err.count("run.json cannot be written" if place == "full" else "cannot store files now") == 1, (
        ended.err
    )


def test_a_pod_without_storage_gets_a_warning(programs: Programs) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "MLDIAG_STORAGE": ""}
    ended = programs.run(f"{BEGIN}\nmachinelearning_run('a')\nmachinelearning_run('b')\n", env=env)
    assert ended.err.count("end with the pod") == 1
    assert len(list_runs(str(programs.folder / "mldiagnostics"))) == 2


def test_a_program_that_changes_its_directory_keeps_its_storage(programs: Programs) -> None:
    source = f"import os{BEGIN}\nrun = machinelearning_run('job', storage='here')\nos.chdir('/')\n{TRAIN}"
    assert programs.run(source).code == 0
    [row] = list_runs(str(programs.folder / "here"))
    assert len(recorded(str(programs.folder / "here"), row.run_id)) == 3


@pytest.mark.parametrize("place", ["", "files", "~/files"])
def test_a_deleted_working_directory_is_reported_with_advice(programs: Programs, place: str) -> None:
    gone = "import os, tempfile\nos.chdir(folder := tempfile.mkdtemp())\nos.rmdir(folder)\n"
    source = f"{gone}{BEGIN}\nrun = machinelearning_run('job')\n{TRAIN}"
    ended = programs.run(source, env={"MLDIAG_STORAGE": place, "HOME": programs.storage})
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    if place.startswith("~"):
        assert list_runs(f"{programs.storage}/files"), ended.err
    else:
        assert "set an absolute path or URL with storage=" in ended.err


def test_no_framework_and_no_package_is_imported(programs: Programs) -> None:
    source = f"""{BEGIN}
import json, sys
run = machinelearning_run("job")
{TRAIN}
run.close()
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names))))
"""
    ended = programs.run(source)
    loaded = {name for name in json.loads(ended.out.splitlines()[-1]) if name[0] != "_"}
    allowed = {"mldiagnostics", "pynvml", "google", "sitecustomize"}  # an extra, a .pth file's namespace, Debian's
    assert loaded <= allowed, loaded
