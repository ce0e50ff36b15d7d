"""Records of programs without a storage are spooled and uploaded later."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import find_run, list_runs, read_records
from support.programs.processes import SDK, Programs, eventually
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.pipeline.records import Record
    from support.servers.emulator import Emulator

PROGRAM = """
import sys, time
from mldiagnostics import machinelearning_run, metrics
from mldiagnostics.profiling.storage import store_run_trace

run = machinelearning_run("job", log_system_metrics=False, run_workload_id="w1")
for step in range(60):
    run.step(step)
    metrics.record("loss", 1.0, step=step)
print(store_run_trace(run, "a0-s10", b"trace").spooled)
closed = run.close()
print(closed.dropped, flush=True)
"""
UNTIL_UPLOADED = """
import os
deadline = time.monotonic() + 100
# Folders may be removed during a walk.
while any(names for _, _, names in os.walk(os.environ["MLDIAG_SPOOL"])):
    assert time.monotonic() < deadline
    time.sleep(0.05)
"""
NO_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
"""As root without the right to write where the mode of a directory forbids it."""


def a_file(programs: Programs) -> Programs:
    Path(programs.storage).write_text("in the way")
    return programs


def a_directory_that_may_not_be_written(programs: Programs) -> Programs:
    Path(programs.storage).mkdir(mode=0o555)
    if os.getuid() != 0:
        return programs
    if not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and setpriv is not there to take this right away")
    return replace(programs, around=NO_OVERRIDE)


def a_file_system_that_cannot_be_written(programs: Programs) -> Programs:
    return replace(programs, env={"MLDIAG_STORAGE": "/proc/mldiagnostics"})


PLACES = [a_file, a_directory_that_may_not_be_written, a_file_system_that_cannot_be_written]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def upload(programs: Programs, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mldiagnostics.upload", *arguments],
        env={**of_programs(), "PYTHONPATH": str(SDK), "MLDIAG_SPOOL": str(programs.folder / "spool"), **env},
        cwd=programs.folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def metrics_of(storage: str, run_id: str) -> list[Record]:
    return [record for record in read_records(storage, run_id, kinds={"metric"}) if record.name == "loss"]


def assert_all_there(storage: str, *, runs: int = 1) -> None:
    """All that `PROGRAM` makes is in the storage, once for each time it ran."""
    [row] = list_runs(storage)
    run = find_run(storage, row.run_id)
    assert (run.name, run.phase, run.step) == ("job", "Completed", 59)
    assert sorted(record.step or 0 for record in metrics_of(storage, row.run_id)) == sorted([*range(60)] * runs)


@pytest.mark.parametrize("place", PLACES)
def test_a_storage_that_cannot_be_written_loses_nothing_and_delays_no_exit(
    place: Callable[[Programs], Programs], programs: Programs, tmp_path: Path
) -> None:
    ended = place(programs).run(PROGRAM)
    assert (ended.code, ended.out) == (0, "True\n{}\n"), ended.err
    warnings = [line for line in ended.err.splitlines() if "began: id" not in line]
    assert len(warnings) == 1, ended.err
    assert f"python -m mldiagnostics.upload {tmp_path}/spool" in warnings[0]
    done = upload(programs, str(tmp_path / "spool"), str(tmp_path / "mended"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert_all_there(str(tmp_path / "mended"))
    assert len(list((tmp_path / "mended").glob("*/plugins/profile/a0-s10/*.xplane.pb"))) == 1
    assert upload(programs).stdout.startswith("nothing waits in")


def test_the_next_process_uploads_what_waits_beside_its_own(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "storage").write_text("in the way")
    for _ in range(2):
        assert programs.run(PROGRAM).code == 0
    (tmp_path / "storage").unlink()
    # An exit waits for the upload for two seconds only.
    ended = programs.run(PROGRAM.replace("closed =", f"{UNTIL_UPLOADED}closed ="))
    assert (ended.code, ended.out) == (0, "False\n{}\n"), ended.err
    spool = tmp_path / "spool"
    assert [path for path in spool.rglob("*") if path.is_file()] == []
    assert_all_there(programs.storage, runs=3)
    sessions = {path.parent.name for path in Path(programs.storage).glob("*/plugins/profile/*/*.xplane.pb")}
    assert "a0-s10" in sessions


def test_many_that_start_at_once_upload_what_waits_once(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "storage").write_text("in the way")
    assert programs.run(PROGRAM).code == 0
    (tmp_path / "storage").unlink()
    wait = PROGRAM.replace("import sys, time\n", "import sys, time\nprint('up', flush=True)\nsys.stdin.readline()\n")
    assert wait != PROGRAM
    source = tmp_path / "waits.py"
    # An exit waits for the upload for two seconds only.
    source.write_text(wait.replace("closed =", f"{UNTIL_UPLOADED}closed ="))
    environment = programs._environment(None)
    children = [
        subprocess.Popen(
            [sys.executable, str(source)], env=environment, cwd=tmp_path,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    for child in children:
        _, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
    [row] = list_runs(programs.storage)
    steps = [record.step for record in metrics_of(programs.storage, row.run_id)]
    assert sorted(steps, key=str) == sorted([*range(60)] * 4, key=str)


def test_a_storage_that_can_be_written_again_gets_the_rest_of_a_run_that_goes_on(programs: Programs) -> None:
    source = """
    import pathlib, sys, time
    from mldiagnostics import machinelearning_run, metrics
    storage = pathlib.Path(sys.argv[1])
    storage.write_text("in the way")
    run = machinelearning_run("job", log_system_metrics=False)
    metrics.record("loss", 1.0, step=0)
    run.recording.flush(10)
    storage.unlink()
    metrics.record("loss", 2.0, step=1)
    assert run.recording.flush(60)
    run.close()
    """
    ended = programs.run(source, programs.storage)
    assert ended.code == 0, ended.err
    row = programs.the_run()
    assert row.phase == "Completed"
    assert [record.step for record in metrics_of(programs.storage, row.run_id)] == [0, 1]


@pytest.mark.parametrize("lacking", ["extra", "credentials"])
def test_a_bucket_without_extra_or_credentials_gets_everything_later(
    lacking: str, programs: Programs, tmp_path: Path, gcs_emulator: Emulator, gcs_bucket: str
) -> None:
    storage = f"gs://{gcs_bucket}/runs"
    without = Programs(tmp_path, options=("-S",)) if lacking == "extra" else programs
    env = {"MLDIAG_STORAGE": storage, "HOME": str(tmp_path), "NO_GCE_CHECK": "true"}
    ended = without.run(PROGRAM, env=env)
    assert (ended.code, ended.out) == (0, "True\n{}\n"), ended.err
    assert ended.err.count("cannot store files now") == 1, ended.err
    assert ("[gcs]" if lacking == "extra" else "no Google credentials") in ended.err
    emulated = {
        "STORAGE_EMULATOR_HOST": gcs_emulator.url, "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true",
    }  # fmt: skip
    listed = upload(programs, "--list")
    assert (listed.returncode, listed.stdout.count(storage)) == (0, 2), listed.stderr
    assert upload(programs, HOME=str(tmp_path), NO_GCE_CHECK="true").returncode == 1
    second = programs.run(PROGRAM, env={**env, **emulated})
    assert (second.code, second.out) == (0, "False\n{}\n"), second.err
    eventually(lambda: upload(programs, **emulated).stdout.startswith("nothing waits"))
    assert_all_there(storage, runs=2)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere"], "'nowhere' is not a directory"),
        (["gs://bucket"], "pass the directory of the spool before the storage"),
        (["full"], "'full' is not a spool"),
        (["--nonsense"], "unrecognized arguments"),
    ],
)
def test_a_command_line_that_is_wrong_is_said(arguments: list[str], error: str, programs: Programs) -> None:
    (programs.folder / "full").mkdir()
    (programs.folder / "full/file").touch()
    done = upload(programs, *arguments)
    assert done.returncode == 2
    assert error in done.stderr


def test_what_a_running_process_uses_is_left_to_it(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "storage").write_text("in the way")
    source = PROGRAM.replace("closed =", "print('spooling', flush=True)\nsys.stdin.readline()\nclosed =")
    child = subprocess.Popen(
        [sys.executable, "-c", source], env=programs._environment(None), cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        assert [child.stdout.readline(), child.stdout.readline()] == ["True\n", "spooling\n"]
        (tmp_path / "storage").unlink()
        done = upload(programs)
        assert done.returncode == 0, done.stdout
        assert "in use by a running process" in done.stdout
        child.communicate("\n", timeout=120)
    assert_all_there(programs.storage)
