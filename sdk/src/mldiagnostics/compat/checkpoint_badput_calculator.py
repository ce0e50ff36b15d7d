"""Compute statistics of checkpoints from Orbax's log entries.

python -m mldiagnostics.checkpoint_badput_calculator --job_name J --logger_name L
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.queries.checkpoints import RESTORE, SAVE, DurationStats, number, operations, spread
from mldiagnostics.locations import is_bucket

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "OPERATION_TYPE_EMERGENCY_RESTORE",
    "OPERATION_TYPE_LOCAL",
    "OPERATION_TYPE_PERSISTENT",
    "OPERATION_TYPE_PERSISTENT_AND_LOCAL",
    "OPERATION_TYPE_RESTORE",
    "OPERATION_TYPE_SAVE",
    "CheckpointBadputCalculator",
    "CheckpointLoggerOptions",
    "RestoreCheckpointManagerVerticalStepStats",
    "SaveCheckpointManagerVerticalStepStats",
]

OPERATION_TYPE_SAVE = "save"
OPERATION_TYPE_RESTORE = "restore"
OPERATION_TYPE_EMERGENCY_RESTORE = "emergency_restore"
OPERATION_TYPE_LOCAL = "local"
OPERATION_TYPE_PERSISTENT = "persistent"
OPERATION_TYPE_PERSISTENT_AND_LOCAL = "persistent_and_local"

_TIERS = (OPERATION_TYPE_LOCAL, OPERATION_TYPE_PERSISTENT, OPERATION_TYPE_PERSISTENT_AND_LOCAL)


@dataclass
class SaveCheckpointManagerVerticalStepStats:
    """Durations of all saves in seconds, in total and by part."""

    total_checkpoint_manager_blocking_time: float = 0.0
    average_checkpoint_manager_blocking_time: float = 0.0
    minimum_checkpoint_manager_blocking_time: float = 0.0
    maximum_checkpoint_manager_blocking_time: float = 0.0
    standard_deviation_checkpoint_manager_blocking_time: float = 0.0
    total_checkpointer_blocking_time: float = 0.0
    average_checkpointer_blocking_time: float = 0.0
    minimum_checkpointer_blocking_time: float = 0.0
    maximum_checkpointer_blocking_time: float = 0.0
    standard_deviation_checkpointer_blocking_time: float = 0.0
    total_wait_for_prev_time: float = 0.0
    average_wait_for_prev_time: float = 0.0
    minimum_wait_for_prev_time: float = 0.0
    maximum_wait_for_prev_time: float = 0.0
    standard_deviation_wait_for_prev_time: float = 0.0
    total_get_old_steps_time: float = 0.0
    average_get_old_steps_time: float = 0.0
    minimum_get_old_steps_time: float = 0.0
    maximum_get_old_steps_time: float = 0.0
    standard_deviation_get_old_steps_time: float = 0.0


@dataclass
class RestoreCheckpointManagerVerticalStepStats:
    """Durations of all restores in seconds, in total and by part."""

    total_checkpoint_manager_time: float = 0.0
    average_checkpoint_manager_time: float = 0.0
    minimum_checkpoint_manager_time: float = 0.0
    maximum_checkpoint_manager_time: float = 0.0
    standard_deviation_checkpoint_manager_time: float = 0.0
    total_restore_time: float = 0.0
    average_restore_time: float = 0.0
    minimum_restore_time: float = 0.0
    maximum_restore_time: float = 0.0
    standard_deviation_restore_time: float = 0.0
    total_broadcast_time: float = 0.0
    average_broadcast_time: float = 0.0
    minimum_broadcast_time: float = 0.0
    maximum_broadcast_time: float = 0.0
    standard_deviation_broadcast_time: float = 0.0


@dataclass
class CheckpointLoggerOptions:
    """Location of the log entries.

    Attributes:
        job_name: Name of the job.
        logger_name: Name of the logger.
        client: An object with `read_cloud_logging_entries`, or Google's logging client with `list_entries`. Default:
            the log of a `GoodputRecorder` of the two names.
        use_goodput_logger: Accepted and ignored: both kinds of entries are in one log.
    """

    job_name: str = "checkpoint_job"
    logger_name: str = "checkpoint_logger"
    client: Any = None
    use_goodput_logger: bool = False


class CheckpointBadputCalculator:
    """Statistics over the saves and restores of a log; `entries` are read on demand."""

    def __init__(self, options: CheckpointLoggerOptions | None = None, *, log: str | None = None) -> None:
        self._options = options or CheckpointLoggerOptions()
        self._log = log
        self.entries: Sequence[Mapping[str, Any]] = []

    def read_entries(self) -> list[Mapping[str, Any]]:
        """Return the log entries of checkpoints.

        Raises:
            LogUnreadable: the log is missing or not readable.
        """
        from mldiagnostics.goodput.log.payloads import read_payloads  # noqa: PLC0415 - `entries` may be set instead

        options = self._options
        payloads = read_payloads(options.job_name, options.logger_name, given=options.client, log=self._log)
        return [entry for entry in payloads if entry.get("event_type")]

    def is_valid_save_stats(
        self, step_stats: Mapping[str, Any], operation_type: str | None = OPERATION_TYPE_PERSISTENT_AND_LOCAL
    ) -> bool:
        """Return whether an entry is of a save to the tier and has its duration.

        Directories in buckets are persistent, all others local.
        """
        if step_stats.get("event_type") != OPERATION_TYPE_SAVE or number(step_stats.get(SAVE.duration)) is None:
            return False
        directory = step_stats.get("directory")
        persistent = isinstance(directory, str) and is_bucket(directory)
        tier = OPERATION_TYPE_PERSISTENT if persistent else OPERATION_TYPE_LOCAL
        return operation_type == OPERATION_TYPE_PERSISTENT_AND_LOCAL or (operation_type == tier and bool(directory))

    def is_valid_restore_stats(
        self, step_stats: Mapping[str, Any], operation_type: str | None = OPERATION_TYPE_PERSISTENT_AND_LOCAL
    ) -> bool:
        """Return whether an entry is of a restore from the tier and has its duration.

        Emergency restores are local.
        """
        kinds = {
            OPERATION_TYPE_LOCAL: (OPERATION_TYPE_EMERGENCY_RESTORE,),
            OPERATION_TYPE_PERSISTENT: (OPERATION_TYPE_RESTORE,),
            OPERATION_TYPE_PERSISTENT_AND_LOCAL: (OPERATION_TYPE_RESTORE, OPERATION_TYPE_EMERGENCY_RESTORE),
        }.get(operation_type or "", ())
        return step_stats.get("event_type") in kinds and number(step_stats.get(RESTORE.duration)) is not None

    def calculate_save_operation_checkpoint_manager_blocking_time(
        self, operation_type: str | None = OPERATION_TYPE_PERSISTENT_AND_LOCAL
    ) -> SaveCheckpointManagerVerticalStepStats:
        """Return the statistics of all saves to a tier.

        Raises:
            ConfigurationError: `operation_type` is not a tier.
        """
        self._prepare(operation_type)
        saves = operations((entry for entry in self.entries if self.is_valid_save_stats(entry, operation_type)), SAVE)
        return SaveCheckpointManagerVerticalStepStats(
            **_named("checkpoint_manager_blocking_time", spread(saves, SAVE.duration)),
            **_named("checkpointer_blocking_time", spread(saves, "checkpointer_blocking_duration_secs")),
            **_named("wait_for_prev_time", spread(saves, "wait_for_prev_duration_secs")),
            **_named("get_old_steps_time", spread(saves, "get_old_steps_duration_secs")),
        )

    def calculate_restore_operation_checkpoint_manager_blocking_time(
        self, operation_type: str | None = OPERATION_TYPE_PERSISTENT_AND_LOCAL
    ) -> RestoreCheckpointManagerVerticalStepStats:
        """Return the statistics of all restores from a tier.

        Raises:
            ConfigurationError: `operation_type` is not a tier.
        """
        self._prepare(operation_type)
        valid = (entry for entry in self.entries if self.is_valid_restore_stats(entry, operation_type))
        restores = operations(valid, RESTORE)
        return RestoreCheckpointManagerVerticalStepStats(
            **_named("checkpoint_manager_time", spread(restores, RESTORE.duration)),
            **_named("restore_time", spread(restores, "checkpointer_duration_secs")),
            **_named("broadcast_time", spread(restores, "broadcast_duration_secs", zeros=False)),
        )

    def _prepare(self, operation_type: str | None) -> None:
        if operation_type not in _TIERS:
            raise ConfigurationError(f"operation_type={operation_type!r} is not a tier; use one of {', '.join(_TIERS)}")
        self.entries = self.entries or self.read_entries()


def _named(quantity: str, figures: DurationStats) -> dict[str, float]:
    return {f"{figure}_{quantity}": value for figure, value in figures._asdict().items()}


def _table(stats: SaveCheckpointManagerVerticalStepStats | RestoreCheckpointManagerVerticalStepStats) -> str:
    """Return the statistics as text, one line per quantity."""
    quantities = [each.name.removeprefix("total_") for each in fields(stats) if each.name.startswith("total_")]
    lines = [f"{'seconds':34}" + "".join(f"{figure.split('_')[-1]:>10}" for figure in DurationStats._fields)]
    for quantity in quantities:
        values = [getattr(stats, f"{figure}_{quantity}") for figure in DurationStats._fields]
        lines.append(f"{quantity:34}" + "".join(f"{value:10.3f}" for value in values))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the statistics of a log; return the exit status."""
    import argparse  # noqa: PLC0415 - only the command needs it
    import sys  # noqa: PLC0415

    from mldiagnostics.errors import MLDiagnosticsError  # noqa: PLC0415
    from mldiagnostics.standard_output import write_text  # noqa: PLC0415
    from mldiagnostics.text.terminal import printable  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="python -m mldiagnostics.checkpoint_badput_calculator", description=__doc__)
    parser.add_argument("--job_name", default="checkpoint_job")
    parser.add_argument("--logger_name", default="checkpoint_logger")
    parser.add_argument("--operation_type", default=OPERATION_TYPE_PERSISTENT_AND_LOCAL, choices=_TIERS)
    parser.add_argument("--log", help="path or URL of the log; default: the log of the two names")
    parser.add_argument("--client", help="accepted for old command lines and not used")
    options = parser.parse_args(arguments)
    calculator = CheckpointBadputCalculator(
        CheckpointLoggerOptions(options.job_name, options.logger_name), log=options.log
    )
    try:
        saves = calculator.calculate_save_operation_checkpoint_manager_blocking_time(options.operation_type)
        restores = calculator.calculate_restore_operation_checkpoint_manager_blocking_time(options.operation_type)
        write_text(f"Saves\n{_table(saves)}\n\nRestores\n{_table(restores)}\n")
    except MLDiagnosticsError as error:
        print(printable(str(error)), file=sys.stderr)  # noqa: T201 - a command line
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
