"""A directory of the spool belongs to one living process, and to the next one when that is gone."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING

import pytest
from mldiagnostics import diagnostics
from mldiagnostics.sinks import SinkUnavailable
from mldiagnostics.spool.decisions import MAX_AGE_S
from mldiagnostics.spool.directory import SpoolUnavailable, abandoned, claim, take
from mldiagnostics.spool.places import has_any, roots
from support.records import origin, run_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own for what waits, in front of others that are the test's too."""
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "spool"


def test_what_is_left_is_found_by_the_next_for_the_same_destination_once() -> None:
    left = claim("gs://a", origin(incarnation="00000001"))
    (left.files / "records").write_text("four")
    assert (left.bytes(), list(abandoned("gs://a"))) == (4, [])
    left.leave()
    assert list(abandoned("gs://b")) == []
    [again] = abandoned("gs://a/")
    assert (again.origin, again.bytes(), again.keys()) == (origin(incarnation="00000001"), 4, ["records"])
    assert list(abandoned("gs://a")) == []
    again.remove()
    assert not has_any("gs://a")


def test_files_and_records_for_one_destination_are_different_things() -> None:
    claim("otlp a", origin(), form="records").leave()
    assert list(abandoned("otlp a")) == []
    [left] = abandoned("otlp a", form="records")
    left.remove()


def test_two_processes_cannot_be_one_incarnation_but_may_have_parts() -> None:
    first, part = claim("gs://a", origin()), claim("gs://a", origin(), part="files")
    with pytest.raises(SinkUnavailable, match="another process's"):
        claim("gs://a", origin())
    first.remove()
    claim("gs://a", origin()).remove()
    part.remove()


def test_only_the_dead_are_inherited_from(tmp_path: Path) -> None:
    body = """
from mldiagnostics.spool.directory import claim
held = claim("gs://a", Origin("a" * 64, "test", "", sys.argv[0] or "x", "host", rank=4))
os.kill(os.getpid(), signal.SIGKILL)
"""
    living = claim("gs://a", origin(incarnation="living"))
    assert run_program(body, tmp_path).returncode == -9
    assert [each.origin.rank for each in abandoned("gs://a")] == [4]
    living.remove()


def test_a_forked_child_that_goes_on_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    body = """
from mldiagnostics.spool.directory import claim
held = claim("gs://a", Origin("a" * 64, "test", "", "0123abcd", "host"))
child = os.fork()
if not child:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = run_program(body, tmp_path)
    assert done.returncode == -9
    [left] = abandoned("gs://a")
    left.remove()


def test_what_is_not_one_of_the_spools_is_passed_over(spool: Path) -> None:
    claim("gs://a", origin()).leave()
    [home] = spool.iterdir()
    for name, said in {
        "empty": None,
        "broken": '{"v": 1, ',
        "later": json.dumps({"v": 2, "destination": "gs://a", "form": "files", "origin": {}}),
        "another": json.dumps({"v": 1, "destination": "gs://a", "form": "files", "origin": {"rank": 1}}),
    }.items():
        (home / name).mkdir()
        (home / name / ".lock").touch()
        if said is not None:
            (home / name / "spool.json").write_text(said)
    (home / "file").touch()
    (home / "link").symlink_to(home / "0123abcd")
    assert [each.origin for each in abandoned("gs://a")] == [origin()]


@pytest.mark.parametrize(
    ("unset", "place"),
    [([], "spool"), (["MLDIAG_SPOOL"], "state/mldiagnostics/spool"), (["MLDIAG_SPOOL", "XDG"], "mldiagnostics-{user}")],
)
def test_it_is_in_the_first_place_that_can_be_written_and_private(
    unset: list[str], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    if "MLDIAG_SPOOL" in unset:
        monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "file/spool"))
    if "XDG" in unset:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file/state"))
    claimed = claim("gs://a", origin())
    root = tmp_path / place.format(user=os.getuid())
    assert claimed.files.is_relative_to(root)
    private = [path for path in claimed.files.parents if path.is_relative_to(root)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o700}
    claimed.leave()
    assert [each.origin for each in abandoned("gs://a")] == [origin()]


def test_a_place_that_another_user_or_a_link_has_taken_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLDIAG_SPOOL")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"mldiagnostics-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    claimed = claim("gs://a", origin())
    assert claimed.files.is_relative_to(tmp_path)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_another_user_has_put_there_is_not_uploaded_in_our_name(spool: Path) -> None:
    claim("gs://a", origin()).leave()
    [home] = spool.iterdir()
    os.chown(home / "0123abcd", 65534, 65534)
    assert list(abandoned("gs://a")) == []
    theirs = take(home / "0123abcd", of_others=True)
    assert theirs is not None
    theirs.remove()


def test_what_nobody_uploaded_for_a_month_is_deleted_and_said(spool: Path) -> None:
    left = claim("gs://old", origin(incarnation="00000001"))
    (left.files / "records").write_text("four")
    long_ago = time.time() - MAX_AGE_S - 60
    for path in (left.files / "records", left.path):
        os.utime(path, (long_ago, long_ago))
    path = left.path
    left.leave()
    claim("gs://new", origin()).remove()
    assert not path.exists()
    assert diagnostics.counts()["spool-expired"] >= 1
    assert [folder.name.startswith("gs-") for folder in spool.iterdir()] == [True, True]


def test_no_place_at_all_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "file/spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file/state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
    with pytest.raises(SpoolUnavailable, match="set MLDIAG_SPOOL"):
        claim("gs://a", origin())
    assert str(roots()[0]) == str(tmp_path / "file/spool")
