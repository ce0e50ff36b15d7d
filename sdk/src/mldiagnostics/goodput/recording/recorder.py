"""`GoodputRecorder`: records the events of a job.

A call appends a tuple to a buffer; other threads make and write the payloads. No method raises, and only `flush` and
`close` wait.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from mldiagnostics.goodput.events.payloads import entry_maker, payload_maker, short_text, text
from mldiagnostics.goodput.recording.arguments import are_short
from mldiagnostics.goodput.recording.callback_writer import CallbackWriter
from mldiagnostics.goodput.recording.log_writer import LogWriter
from mldiagnostics.goodput.recording.spans import Span

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from mldiagnostics.goodput.recording.log_writer import EventWriter


Moment: TypeAlias = "datetime | float | None"
"""A datetime, POSIX seconds, or now."""


def _leave_out(*_: object) -> None:
    """Record nothing: the recorder is off."""


class GoodputRecorder:
    """Records how a job spends its time.

    Moments are datetimes (naive ones are local time) or POSIX seconds, by default now. A step can be an array on a
    device: another thread reads it. Invalid values are dropped, with one warning on the logger `mldiagnostics`.

    `with recorder.step(n):` and the other context managers record a start and an end; a step or job that an exception
    leaves has no end.

    Args:
        job_name: The job.
        logger_name: The log; calculators and monitors find it by the same two names.
        logging_enabled: Whether to record; without it, every method returns at once. One process of a job records, or
            all of them.
        cloud_logger: An object with `write_cloud_logging_entry(entry)`, called with each event instead of a log.
        background_grace_period_s: Accepted and ignored, as are the other `background_…` parameters.
        background_batch_size: Accepted and ignored.
        background_max_latency_s: Accepted and ignored.
        log: The path or URL of the log; None derives it from the names, see `mldiagnostics.goodput.location`.

    Example:
        >>> recorder = GoodputRecorder("my-job", "goodput_my-job", logging_enabled=True)
        >>> with recorder.job():
        ...     for n in range(3):
        ...         with recorder.step(n):
        ...             pass
    """

    def __init__(
        self,
        job_name: str,
        logger_name: str,
        logging_enabled: bool = False,
        cloud_logger: Any = None,
        *,
        background_grace_period_s: float = 5.0,  # noqa: ARG002 - of the peer
        background_batch_size: int = 100,  # noqa: ARG002 - the same
        background_max_latency_s: float = 2.0,  # noqa: ARG002 - the same
        log: str | os.PathLike[str] | None = None,
    ) -> None:
        self.job_name, self.logger_name = text(job_name), text(logger_name)
        self._writer: EventWriter | None = None
        logging_enabled = bool(logging_enabled) and are_short(self.job_name, self.logger_name)
        if logging_enabled and cloud_logger is not None:
            self._writer = CallbackWriter(cloud_logger)
        elif logging_enabled:
            self._writer = LogWriter(self.job_name, self.logger_name, log)
        if self._writer is not None:
            self._step_start = payload_maker(self.job_name, "step_start_time", step_key="step_count", needs_step=True)
            self._step_end = payload_maker(self.job_name, "step_end_time", step_key="step_count", needs_step=True)
            self._load_start = payload_maker(self.job_name, "data_loading_start_time")
            self._load_end = payload_maker(self.job_name, "data_loading_end_time")
        start: Callable[[int, float], None] = _leave_out
        note_clock: Callable[[], None] = _leave_out
        if self._writer is not None:
            start, note_clock = partial(self._writer.write, self._step_start, None), self._writer.note_clock
        self.start_step = start  # for MLRun.step: a step that starts now, and a reading of `clock.steady`
        self.note_clock = note_clock  # for the heartbeat

    def record_job_start_time(self, start_time: Moment = None) -> None:
        """Record that the job starts, or starts again."""
        self._record("job_start_time", start_time)

    def record_job_end_time(self, end_time: Moment = None) -> None:
        """Record that the job has ended."""
        self._record("job_end_time", end_time)

    def record_step_start_time(self, step: Any, start_time: Moment = None) -> None:
        """Record that a step starts."""
        if self._writer is not None:
            self._writer.write(self._step_start, start_time, step)

    def record_step_end_time(self, step: Any, end_time: Moment = None) -> None:
        """Record that a step has ended.

        It counts for the last step of an attempt; any other step ends at the start of the next one.
        """
        if self._writer is not None:
            self._writer.write(self._step_end, end_time, step)

    def record_tpu_init_start_time(self, start_time: Moment = None) -> None:
        """Record that the initialization of accelerators starts."""
        self._record("tpu_init_start_time", start_time)

    def record_tpu_init_end_time(self, end_time: Moment = None) -> None:
        """Record that accelerators are initialized."""
        self._record("tpu_init_end_time", end_time)

    def record_training_preparation_start_time(self, start_time: Moment = None) -> None:
        """Record that the preparation of the training starts."""
        self._record("training_prep_start_time", start_time)

    def record_training_preparation_end_time(self, end_time: Moment = None) -> None:
        """Record that the training is prepared."""
        self._record("training_prep_end_time", end_time)

    def record_data_loading_start_time(self, start_time: Moment = None) -> None:
        """Record that a load of data starts."""
        if self._writer is not None:
            self._writer.write(self._load_start, start_time)

    def record_data_loading_end_time(self, end_time: Moment = None) -> None:
        """Record that a load of data has ended."""
        if self._writer is not None:
            self._writer.write(self._load_end, end_time)

    def record_custom_badput_event_start_time(
        self, start_time: Moment = None, custom_badput_event_type: str = "unknown"
    ) -> None:
        """Record that a custom event starts, such as `EVAL`."""
        self._record(
            "custom_badput_event_start_time", start_time, custom_badput_event_type=short_text(custom_badput_event_type)
        )

    def record_custom_badput_event_end_time(
        self, end_time: Moment = None, custom_badput_event_type: str = "unknown"
    ) -> None:
        """Record that a custom event has ended."""
        kind = short_text(custom_badput_event_type)
        self._record("custom_badput_event_end_time", end_time, custom_badput_event_type=kind)

    def record_checkpoint_progress(self, step: Any, checkpoint_start_time: Moment) -> None:
        """Do nothing, as the peer; see `record_checkpoint_save_start_time`."""

    def record_checkpoint_save_start_time(self, step: Any = None, start_time: Moment = None) -> None:
        """Record that a save of `step`, if it is known, starts to block training."""
        self._record_checkpoint("checkpoint_save_start_time", start_time, step)

    def record_checkpoint_save_end_time(self, step: Any = None, end_time: Moment = None) -> None:
        """Record that a save has stopped blocking training."""
        self._record_checkpoint("checkpoint_save_end_time", end_time, step)

    def record_checkpoint_restore_start_time(self, step: Any = None, start_time: Moment = None) -> None:
        """Record that a restore of `step`, if it is known, starts."""
        self._record_checkpoint("checkpoint_restore_start_time", start_time, step)

    def record_checkpoint_restore_end_time(self, step: Any = None, end_time: Moment = None) -> None:
        """Record that a restore has ended."""
        self._record_checkpoint("checkpoint_restore_end_time", end_time, step)

    def record_program_startup_start_time(self, start_time: Moment = None) -> None:
        """Record that the compilation of the program starts."""
        self._record("program_startup_start_time", start_time)

    def record_program_startup_end_time(self, end_time: Moment = None) -> None:
        """Record that the program is compiled."""
        self._record("program_startup_end_time", end_time)

    def record_disruption(self, cause: str, time: Moment = None) -> None:
        """Record the cause for which this attempt is about to end, such as `preemption`."""
        self._record("disruption_time", time, disruption_cause=short_text(cause))

    def record_entry(self, entry: Mapping[str, Any]) -> None:
        """Record an entry of Orbax about a save or restore that has ended."""
        if self._writer is not None:
            self._writer.write(entry_maker(self.job_name, entry))

    def step(self, step: Any) -> Span:
        """Record a block as a step."""
        return Span(self.record_step_start_time, self.record_step_end_time, step, whole=True)

    def job(self) -> Span:
        """Record a block as the job."""
        return Span(self.record_job_start_time, self.record_job_end_time, whole=True)

    def event(self, custom_badput_event_type: str) -> Span:
        """Record a block as a custom event, such as `EVAL`."""
        start, end = self.record_custom_badput_event_start_time, self.record_custom_badput_event_end_time
        return Span(start, end, None, custom_badput_event_type)

    def tpu_init(self) -> Span:
        """Record a block as the initialization of accelerators."""
        return Span(self.record_tpu_init_start_time, self.record_tpu_init_end_time)

    def training_preparation(self) -> Span:
        """Record a block as the preparation of the training."""
        return Span(self.record_training_preparation_start_time, self.record_training_preparation_end_time)

    def data_loading(self) -> Span:
        """Record a block as a load of data."""
        return Span(self.record_data_loading_start_time, self.record_data_loading_end_time)

    def program_startup(self) -> Span:
        """Record a block as the compilation of the program."""
        return Span(self.record_program_startup_start_time, self.record_program_startup_end_time)

    def checkpoint_save(self, step: Any = None) -> Span:
        """Record a block as a save."""
        return Span(self.record_checkpoint_save_start_time, self.record_checkpoint_save_end_time, step)

    def checkpoint_restore(self, step: Any = None) -> Span:
        """Record a block as a restore."""
        return Span(self.record_checkpoint_restore_start_time, self.record_checkpoint_restore_end_time, step)

    def flush(self) -> None:
        """Wait until all events are in the log, for at most 10 s."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Flush, and release threads and files; a later event opens the log again."""
        if self._writer is not None:
            self._writer.close()

    def _record(self, key: str, moment: object, **more: Any) -> None:
        if self._writer is not None:
            self._writer.write(payload_maker(self.job_name, key, **more), moment)

    def _record_checkpoint(self, key: str, moment: object, step: object) -> None:
        if self._writer is not None:
            self._writer.write(payload_maker(self.job_name, key, step_key="checkpoint_step"), moment, step)
