"""A spool directory belongs to one running process, and to the next one when that has ended."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING

import pytest
from mldiagnostics import diagnostics
from mldiagnostics.sinks import SinkUnavailable
from mldiagnostics.spool.creation import SpoolUnavailable, create_directory
from mldiagnostics.spool.decisions import MAX_AGE_S
from mldiagnostics.spool.directory import abandoned_directories, acquire_directory
from mldiagnostics.spool.places import has_any, roots
from support.records import origin, run_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary directories for all places of the spool."""
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "spool"


def test_a_released_directory_is_yielded_once_for_its_destination() -> None:
    left = create_directory("gs://a", origin(incarnation="00000001"))
    (left.files / "records").write_text("four")
    assert (left.bytes(), list(abandoned_directories("gs://a"))) == (4, [])
    left.release()
    assert list(abandoned_directories("gs://b")) == []
    [again] = abandoned_directories("gs://a/")
    assert (again.origin, again.bytes(), again.keys()) == (origin(incarnation="00000001"), 4, ["records"])
    assert list(abandoned_directories("gs://a")) == []
    again.remove()
    assert not has_any("gs://a")


def test_a_full_disk_leaves_no_descriptors_and_directories(tmp_path: Path) -> None:
    body = """
import resource
from mldiagnostics.spool.creation import SpoolUnavailable, create_directory
origin = Origin("a" * 64, "test", sys.argv[1], "0123abcd", "host")
create_directory("gs://first", origin).release()
before = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
for _ in range(3):
    try:
        create_directory("gs://a", origin)
    except SpoolUnavailable as error:
        print("no local directory can hold its spool" in str(error))
print(len(os.listdir("/proc/self/fd")) - before)
"""
    result = run_program(body, tmp_path)
    assert (result.stdout, result.stderr) == ("True\n" * 3 + "0\n", "")
    assert not list(tmp_path.glob("mldiagnostics-" + "?" * 16))
    assert [path.name for path in (tmp_path / "spool").rglob("spool.json")] == ["spool.json"]


def test_files_and_records_for_one_destination_are_separate() -> None:
    create_directory("otlp a", origin(), form="records").release()
    assert list(abandoned_directories("otlp a")) == []
    [left] = abandoned_directories("otlp a", form="records")
    left.remove()


def test_one_incarnation_has_one_directory_per_part() -> None:
    first, part = create_directory("gs://a", origin()), create_directory("gs://a", origin(), part="files")
    with pytest.raises(SinkUnavailable, match="another process has the same incarnation"):
        create_directory("gs://a", origin())
    first.remove()
    create_directory("gs://a", origin()).remove()
    part.remove()


def test_only_directories_of_ended_processes_are_abandoned(tmp_path: Path) -> None:
    body = """
from mldiagnostics.spool.creation import create_directory
directory = create_directory("gs://a", Origin("a" * 64, "test", "", sys.argv[0] or "x", "host", rank=4))
os.kill(os.getpid(), signal.SIGKILL)
"""
    running = create_directory("gs://a", origin(incarnation="running"))
    assert run_program(body, tmp_path).returncode == -9
    assert [each.origin.rank for each in abandoned_directories("gs://a")] == [4]
    running.remove()


def test_a_surviving_forked_child_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    body = """
from mldiagnostics.spool.creation import create_directory
directory = create_directory("gs://a", Origin("a" * 64, "test", "", "0123abcd", "host"))
child = os.fork()
if not child:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = run_program(body, tmp_path)
    assert done.returncode == -9
    [left] = abandoned_directories("gs://a")
    left.remove()


def test_directories_without_a_valid_spool_json_are_skipped(spool: Path) -> None:
    create_directory("gs://a", origin()).release()
    [home] = spool.iterdir()
    for name, text in {
        "empty": None,
        "broken": '{"v": 1, ',
        "later": json.dumps({"v": 2, "destination": "gs://a", "form": "files", "origin": {}}),
        "another": json.dumps({"v": 1, "destination": "gs://a", "form": "files", "origin": {"rank": 1}}),
    }.items():
        (home / name).mkdir()
        (home / name / ".lock").touch()
        if text is not None:
            (home / name / "spool.json").write_text(text)
    (home / "file").touch()
    (home / "link").symlink_to(home / "0123abcd")
    assert [each.origin for each in abandoned_directories("gs://a")] == [origin()]


@pytest.mark.parametrize(
    ("unset", "place"),
    [([], "spool"), (["MLDIAG_SPOOL"], "state/mldiagnostics/spool"), (["MLDIAG_SPOOL", "XDG"], "mldiagnostics-{user}")],
)
def test_the_spool_is_in_the_first_writable_place_and_private(
    unset: list[str], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    if "MLDIAG_SPOOL" in unset:
        monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "file/spool"))
    if "XDG" in unset:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file/state"))
    directory = create_directory("gs://a", origin())
    root = tmp_path / place.format(user=os.getuid())
    assert directory.files.is_relative_to(root)
    private = [path for path in directory.files.parents if path.is_relative_to(root)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o700}
    directory.release()
    assert [each.origin for each in abandoned_directories("gs://a")] == [origin()]


def test_a_place_that_is_a_link_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLDIAG_SPOOL")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"mldiagnostics-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    directory = create_directory("gs://a", origin())
    assert directory.files.is_relative_to(tmp_path)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.root
def test_another_users_directory_is_not_uploaded(spool: Path) -> None:
    create_directory("gs://a", origin()).release()
    [home] = spool.iterdir()
    os.chown(home / "0123abcd", 65534, 65534)
    assert list(abandoned_directories("gs://a")) == []
    directory = acquire_directory(home / "0123abcd", of_others=True)
    assert directory is not None
    directory.remove()


def test_files_that_waited_over_30_days_are_deleted_with_a_warning(spool: Path) -> None:
    left = create_directory("gs://old", origin(incarnation="00000001"))
    (left.files / "records").write_text("four")
    long_ago = time.time() - MAX_AGE_S - 60
    for path in (left.files / "records", left.path):
        os.utime(path, (long_ago, long_ago))
    path = left.path
    left.release()
    create_directory("gs://new", origin()).remove()
    assert not path.exists()
    assert diagnostics.counts()["spool-expired"] >= 1
    assert [folder.name.startswith("gs-") for folder in spool.iterdir()] == [True, True]


def test_the_error_without_any_place_names_mldiag_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "file/spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file/state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
    with pytest.raises(SpoolUnavailable, match="set MLDIAG_SPOOL"):
        create_directory("gs://a", origin())
    assert str(roots()[0]) == str(tmp_path / "file/spool")
