"""A process does not repeat the reading of an earlier one; invalid snapshots are read anew."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from mldiagnostics import diagnostics
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.snapshots.snapshot import keep, recall, snapshot_path
from mldiagnostics.pipeline.records import Record, encode
from support.goodput.logs import NOW, EventCollector

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics.goodput.log import Log

T = 1_735_689_600.0
LATER = 1_735_700_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of ten steps."""
    file = tmp_path / "log/records/a0-r0-0123abcd-00001.jsonl"
    file.parent.mkdir(parents=True)
    for number in range(10):
        append(tmp_path, number)
    return tmp_path


def append(folder: Path, number: int) -> None:
    payload = {"job_name": "job", "step_count": number, "step_start_time": T + number, "event_id": f"0-{number}"}
    with (folder / "log/records/a0-r0-0123abcd-00001.jsonl").open("a") as file:
        file.write(encode(Record("event", T + number, "goodput", payload=payload)))


def read(folder: Path) -> tuple[Log, History]:
    log, history = open_log(folder / "log"), History()
    log.read_new(history, NOW)
    return log, history


def kept(folder: Path) -> Path:
    log, history = read(folder)
    path = snapshot_path(folder / "cache", log)
    assert keep(path, log, history)
    return path


def test_a_snapshot_and_what_came_later_is_the_whole_log(folder: Path) -> None:
    path = kept(folder)
    append(folder, 10)
    log, rest = open_log(folder / "log"), EventCollector()
    history = recall(path, log)
    assert history is not None
    log.read_new(rest, NOW)
    assert rest.steps() == [10]
    for event in rest.events:
        history.add(event)
    _, whole = read(folder)
    assert history.of(LATER).account(LATER) == whole.of(LATER).account(LATER)


def test_nothing_was_kept_yet(folder: Path) -> None:
    log = open_log(folder / "log")
    assert recall(snapshot_path(folder / "cache", log), log) is None
    assert not (folder / "cache").exists()


def test_each_log_and_job_has_a_snapshot_of_its_own(folder: Path) -> None:
    one, other = open_log(folder / "log"), open_log(folder)
    paths = {snapshot_path(folder, log, job_name=job) for log in (one, other) for job in ("", "job")}
    assert len(paths) == 4


def shrink(folder: Path, _: Path) -> None:
    (folder / "log/records/a0-r0-0123abcd-00001.jsonl").write_text("")


def make_anew(folder: Path, _: Path) -> None:
    shrink(folder, folder)
    for number in range(100, 120):
        append(folder, number)


def link(folder: Path, path: Path) -> None:
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "cut": lambda _, path: os.truncate(path, path.stat().st_size - 1),
    "empty": lambda _, path: path.write_bytes(b""),
    "garbage": lambda _, path: path.write_bytes(os.urandom(1000)),
    "pickle": lambda _, path: path.write_bytes(b"\x80\x04\x95\x00\n"),
    "no object": lambda _, path: path.write_bytes(b"[]\n" + path.read_bytes().partition(b"\n")[2]),
    "no position": lambda _, path: path.write_bytes(path.read_bytes().replace(b'"position"', b'"p"', 1)),
    "another version": lambda _, path: path.write_bytes(path.read_bytes().replace(b'{"v": 3', b'{"v": 2', 1)),
    "another log": lambda folder, path: path.write_bytes(
        path.read_bytes().replace(folder.name.encode(), folder.name[:-1].encode(), 1)
    ),
    "a shrunk log": shrink,
    "a new log of the same name": make_anew,
    "others may write it": lambda _, path: path.chmod(0o666),
    "others may write its directory": lambda _, path: path.parent.chmod(0o777),
    "a link": link,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_believed_is_read_anew_with_one_line(folder: Path, damage: str) -> None:
    path, before = kept(folder), diagnostics.counts().get("goodput-snapshot", 0)
    DAMAGES[damage](folder, path)
    log, rest = open_log(folder / "log"), EventCollector()
    assert recall(path, log) is None
    assert diagnostics.counts()["goodput-snapshot"] == before + 1
    log.read_new(rest, NOW)
    changed = {"a shrunk log": [], "a new log of the same name": list(range(100, 120))}
    assert rest.steps() == changed.get(damage, list(range(10)))


def test_a_snapshot_is_its_users_alone(folder: Path) -> None:
    path = kept(folder)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.parent.parent == folder / "cache"
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_directory_of_somebody_else_is_not_used(folder: Path) -> None:
    log, history = read(folder)
    path = snapshot_path(folder / "cache", log)
    (folder / "elsewhere").mkdir()
    path.parent.parent.mkdir()
    path.parent.symlink_to(folder / "elsewhere")
    assert not keep(path, log, history)
    assert not list((folder / "elsewhere").iterdir())


def test_a_disk_that_takes_nothing_costs_only_the_snapshot(folder: Path) -> None:
    log, history = read(folder)
    (folder / "cache").write_text("in the way")
    assert not keep(snapshot_path(folder / "cache", log), log, history)
