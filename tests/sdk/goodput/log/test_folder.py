"""A directory is listed again when it may have changed, and only then."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from mldiagnostics.goodput.log.folder import LogFolder
from mldiagnostics.store.shared import Reader

if TYPE_CHECKING:
    from pathlib import Path

YEAR_NS = 365 * 86_400 * 10**9


def changed_at(path: Path, ns: int) -> None:
    os.utime(path, ns=(ns, ns))


def test_new_files_are_found_by_the_time_of_the_directory(tmp_path: Path) -> None:
    folder, old = LogFolder(str(tmp_path), Reader(str(tmp_path))), time.time_ns() - YEAR_NS
    for number in range(3):
        (tmp_path / f"{number}.jsonl").touch()
        changed_at(tmp_path, old + number)
        assert folder.paths() == [str(tmp_path / f"{each}.jsonl") for each in range(number + 1)]


def test_a_directory_that_did_not_change_is_not_listed(tmp_path: Path) -> None:
    folder, old = LogFolder(str(tmp_path), Reader(str(tmp_path))), time.time_ns() - YEAR_NS
    changed_at(tmp_path, old)
    assert folder.paths() == []
    (tmp_path / "0.jsonl").touch()
    changed_at(tmp_path, old)
    assert folder.paths() == []


def test_a_change_of_now_may_hide_another_one(tmp_path: Path) -> None:
    folder, now = LogFolder(str(tmp_path), Reader(str(tmp_path))), time.time_ns() + YEAR_NS
    for number in range(3):
        (tmp_path / f"{number}.jsonl").touch()
        changed_at(tmp_path, now)
        assert len(folder.paths()) == number + 1


def test_a_file_is_followed_by_the_next_of_its_process(tmp_path: Path) -> None:
    names = [f"a0-r{rank}-0123abcd-{number:05}.jsonl" for rank in (0, 1) for number in (1, 2, 3)]
    for name in [*names, "other.txt"]:
        (tmp_path / name).touch()
    folder = LogFolder(str(tmp_path), Reader(str(tmp_path)))
    assert folder.paths() == [str(tmp_path / name) for name in names]
    assert folder.followed == {str(tmp_path / name) for name in names if "-00003" not in name}
