"""A calculator stores its history for the next one, on this machine or another, and never fails because of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput import GoodputCalculator
from mldiagnostics.goodput.snapshots import stored_history
from support.goodput.entries import JOB, T0, Entries, Payload, at, span, step, steps
from support.goodput.logs import spoil

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = [at("job_start_time", 0), *span("tpu_init", 0, 5), *steps(0, [10, 20, 30, 40])]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one file."""
    file = tmp_path / "log/a.jsonl"
    file.parent.mkdir()
    write(file, BEGIN)
    return file


@pytest.fixture
def every_read_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_history, "_SLOW_READ_S", -1.0)


def write(file: Path, payloads: list[Payload]) -> None:
    with file.open("a") as lines:
        lines.writelines(json.dumps(payload) + "\n" for payload in payloads)


def calculator(log: Path, cache: Path, now: float, gcs_path: str | None = None) -> GoodputCalculator:
    return GoodputCalculator(JOB, "any", log=log.parent, cache_dir=cache, gcs_path=gcs_path, clock=lambda: T0 + now)


@pytest.mark.usefixtures("every_read_is_slow")
def test_the_next_calculator_reads_only_what_is_new(log: Path, tmp_path: Path) -> None:
    assert calculator(log, tmp_path / "cache", 50).get_job_goodput() == (60.0, {}, 2)
    spoil(log)
    write(log, [step(4, 50)])
    assert calculator(log, tmp_path / "cache", 50).get_job_goodput() == (80.0, {}, 3)
    assert calculator(log, tmp_path / "elsewhere", 50).ignored == {"unreadable line": 1}


@pytest.mark.usefixtures("every_read_is_slow")
def test_a_log_that_began_anew_is_read_anew(log: Path, tmp_path: Path) -> None:
    calculator(log, tmp_path / "cache", 50).get_job_goodput()
    log.unlink()
    write(log, BEGIN[:5])
    assert calculator(log, tmp_path / "cache", 50).get_job_goodput() == (20.0, {}, 0)


def test_short_logs_are_not_worth_it(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_history, "_SLOW_READ_S", 60.0)
    calculator(log, tmp_path / "cache", 50).get_job_goodput()
    assert not (tmp_path / "cache").exists()


def test_another_machine_goes_on_from_the_copy(log: Path, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    first = calculator(log, tmp_path / "here", 50, gcs_path=str(bucket))
    first.get_job_goodput()
    first.sync_to_gcs()
    [copy] = (bucket / "goodput_cache").iterdir()
    assert copy.suffix == ".goodput"
    spoil(log)
    write(log, [step(4, 50)])
    there = calculator(log, tmp_path / "there", 50, gcs_path=str(bucket))
    assert there.get_job_goodput() == (80.0, {}, 3)


def test_unwritable_copies_cause_only_a_warning(log: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "nowhere"):
        reader = calculator(log, tmp_path / "cache", 50, gcs_path=str(place))
        assert reader.get_job_goodput() == (60.0, {}, 2)
        reader.sync_to_gcs()


def test_the_log_of_an_object_is_not_kept(tmp_path: Path) -> None:
    reader = GoodputCalculator(
        JOB, "any", Entries(BEGIN), gcs_path=str(tmp_path), cache_dir=tmp_path, clock=lambda: T0 + 50
    )
    assert reader.get_job_goodput() == (60.0, {}, 2)
    reader.sync_to_gcs()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("every_read_is_slow")
def test_a_log_that_is_always_slow_is_not_kept_each_time(log: Path, tmp_path: Path) -> None:
    reader = calculator(log, tmp_path / "cache", 50)
    reader.get_job_goodput()
    [kept] = (tmp_path / "cache").rglob("*.goodput")
    kept.unlink()
    reader.get_job_goodput()
    assert not kept.exists()
