"""Statistics of checkpoints from Orbax's entries, by operation, also from incomplete ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.checkpoint_badput_calculator import CheckpointBadputCalculator, CheckpointLoggerOptions, main
from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

T0 = 1_700_000_000.0


def save(
    step: int, *, at: float, took: float | None, directory: str | None = "gs://b/c", **more: Any
) -> dict[str, Any]:
    return {
        "step": step,
        "event_type": "save",
        "directory": directory,
        "checkpoint_manager_blocking_start_time": T0 + at,
        "checkpoint_manager_blocking_duration_secs": took,
        "checkpointer_blocking_duration_secs": None,
        **more,
    }


def restore(step: int, *, at: float, took: float, kind: str = "restore", **more: Any) -> dict[str, Any]:
    times = {"checkpoint_manager_start_time": T0 + at, "checkpoint_manager_duration_secs": took}
    return {"step": step, "event_type": kind, "directory": "gs://b/c", **times, **more}


def calculator(*entries: dict[str, Any]) -> CheckpointBadputCalculator:
    made = CheckpointBadputCalculator(CheckpointLoggerOptions("job", "logger"))
    made.entries = entries
    return made


def test_hosts_of_one_save_are_averaged_and_saves_add_up() -> None:
    stats = calculator(
        save(10, at=0, took=4, wait_for_prev_duration_secs=1.0),
        save(10, at=1, took=2, wait_for_prev_duration_secs=3.0),
        save(20, at=100, took=6, wait_for_prev_duration_secs=0.0),
    ).calculate_save_operation_checkpoint_manager_blocking_time()
    assert stats.total_checkpoint_manager_blocking_time == 9
    assert stats.average_checkpoint_manager_blocking_time == 4.5
    assert stats.minimum_checkpoint_manager_blocking_time == 3
    assert stats.maximum_checkpoint_manager_blocking_time == 6
    assert stats.standard_deviation_checkpoint_manager_blocking_time == pytest.approx(2.1213, abs=1e-4)
    assert (stats.total_wait_for_prev_time, stats.minimum_wait_for_prev_time) == (2.0, 0.0)
    assert stats.total_checkpointer_blocking_time == 0.0


def test_a_step_that_is_saved_again_after_a_restart_counts_twice() -> None:
    stats = calculator(
        save(10, at=0, took=4), save(10, at=500, took=6)
    ).calculate_save_operation_checkpoint_manager_blocking_time()
    assert stats.total_checkpoint_manager_blocking_time == 10
    stats = calculator(
        restore(10, at=0, took=4), restore(10, at=500, took=6)
    ).calculate_restore_operation_checkpoint_manager_blocking_time()
    assert stats.total_checkpoint_manager_time == 10


def test_what_is_null_is_not_counted() -> None:
    made = calculator(
        save(10, at=0, took=None),
        save(20, at=50, took=5, directory=None),
        {"event_type": "save"},
        {"job_start_time": T0},
    )
    stats = made.calculate_save_operation_checkpoint_manager_blocking_time()
    assert (stats.total_checkpoint_manager_blocking_time, stats.average_checkpoint_manager_blocking_time) == (5, 5)
    none = made.calculate_restore_operation_checkpoint_manager_blocking_time()
    assert (none.total_checkpoint_manager_time, none.standard_deviation_restore_time) == (0.0, 0.0)


def test_saves_are_distinguished_by_directory_and_restores_by_kind() -> None:
    made = calculator(
        save(10, at=0, took=4),
        save(10, at=0, took=1, directory="/local/c"),
        restore(10, at=50, took=7),
        restore(10, at=80, took=2, kind="emergency_restore", broadcast_duration_secs=0.5),
        restore(10, at=90, took=2, kind="emergency_restore", broadcast_duration_secs=0.0),
    )
    saves = made.calculate_save_operation_checkpoint_manager_blocking_time
    restores = made.calculate_restore_operation_checkpoint_manager_blocking_time
    assert [saves(tier).total_checkpoint_manager_blocking_time for tier in ("local", "persistent")] == [1, 4]
    assert saves().total_checkpoint_manager_blocking_time == 5
    assert [restores(tier).total_checkpoint_manager_time for tier in ("local", "persistent")] == [4, 7]
    assert (restores().total_broadcast_time, restores().average_broadcast_time) == (0.5, 0.5)


def test_another_tier_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'remote' is not a tier; use one of local, persistent"):
        calculator().calculate_save_operation_checkpoint_manager_blocking_time("remote")


class Reader:
    """A log of somebody's own."""

    def read_cloud_logging_entries(self) -> list[dict[str, Any]]:
        return [save(1, at=0, took=2), {"job_name": "job", "job_start_time": T0}]


def test_entries_come_from_whoever_is_given() -> None:
    made = CheckpointBadputCalculator(CheckpointLoggerOptions("job", "logger", Reader(), use_goodput_logger=True))
    assert made.read_entries() == [save(1, at=0, took=2)]
    assert made.calculate_save_operation_checkpoint_manager_blocking_time().total_checkpoint_manager_blocking_time == 2


def test_the_command_prints_a_table_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job_timeline.jsonl").write_text(
        '{"job_name": "job", "step": 3, "event_type": "save", "directory": "/c", '
        f'"checkpoint_manager_blocking_start_time": {T0}, "checkpoint_manager_blocking_duration_secs": 2.5}}\n'
        '{"job_name": "job", "torn'
    )
    assert main(["--job_name", "job", "--logger_name", "any", "--log", str(tmp_path)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("checkpoint_manager_blocking")]
    assert line.split()[1:] == ["2.500", "2.500", "2.500", "2.500", "0.000"]


def test_the_command_says_where_it_found_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--job_name", "job", "--log", str(tmp_path / "none")]) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err
