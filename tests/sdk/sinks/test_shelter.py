"""A shelter belongs to one living process, and to the next one when that is gone."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.sinks import SinkUnavailable, shelter
from support.records import origin, run_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own for what waits."""
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def test_what_is_left_is_found_by_the_next_for_the_same_destination_once() -> None:
    left = shelter.claim("gs://a", origin(incarnation="00000001"))
    (left.files / "records").write_text("four")
    assert (left.bytes(), list(shelter.abandoned("gs://a"))) == (4, [])
    left.leave()
    assert list(shelter.abandoned("gs://b")) == []
    [again] = shelter.abandoned("gs://a")
    assert (again.origin, again.bytes()) == (origin(incarnation="00000001"), 4)
    assert list(shelter.abandoned("gs://a")) == []
    again.remove()
    assert list(shelter.abandoned("gs://a")) == []


def test_two_processes_cannot_be_one_incarnation() -> None:
    first = shelter.claim("gs://a", origin())
    with pytest.raises(SinkUnavailable, match="another process's"):
        shelter.claim("gs://a", origin())
    first.leave()
    shelter.claim("gs://a", origin()).remove()


def test_only_the_dead_are_inherited_from(tmp_path: Path) -> None:
    body = """
from mldiagnostics.sinks import shelter
shelter.claim("gs://a", Origin("a" * 64, "test", "", sys.argv[0] or "x", "host", rank=4))
os.kill(os.getpid(), signal.SIGKILL)
"""
    living = shelter.claim("gs://a", origin(incarnation="living"))
    assert run_program(body, tmp_path).returncode == -9
    assert [each.origin.rank for each in shelter.abandoned("gs://a")] == [4]
    living.remove()


def test_what_is_no_shelter_is_passed_over(spool: Path) -> None:
    shelter.claim("gs://a", origin()).leave()
    [home] = spool.iterdir()
    (home / "empty").mkdir()
    (home / "broken").mkdir()
    (home / "broken/origin.json").write_text('{"rank": ')
    (home / "file").touch()
    assert [each.origin for each in shelter.abandoned("gs://a")] == [origin()]


def test_without_a_choice_it_is_private_and_below_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLDIAG_SPOOL")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    claimed = shelter.claim("gs://a", origin())
    root = tmp_path / f"mldiagnostics-{os.getuid()}"
    assert claimed.files.is_relative_to(root)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
