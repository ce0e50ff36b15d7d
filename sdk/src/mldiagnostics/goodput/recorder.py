"""`GoodputRecorder`: what happens to a job, told from the training loop by the names of ml-goodput-measurement.

A call costs a tuple and an append: payloads are made and written by other threads. Nothing raises, nothing waits but
`flush` and `close`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mldiagnostics.goodput.callback_writer import CallbackWriter
from mldiagnostics.goodput.event_payloads import entry_maker, payload_maker, short_text, text
from mldiagnostics.goodput.log_writer import LogWriter
from mldiagnostics.goodput.recorder_arguments import are_short
from mldiagnostics.goodput.spans import Span

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from datetime import datetime

    from mldiagnostics.goodput.log_writer import EventWriter

__all__ = ["GoodputRecorder"]

Moment: TypeAlias = "datetime | float | None"
"""A datetime, POSIX seconds, or now."""


class GoodputRecorder:
    """Records what a job spends its time on.

    With `logging_enabled=False`, the default, every method returns at once: one process of a job, or all, pass true.
    Events go to the log at `log` (see `mldiagnostics.goodput.location`), or to `cloud_logger`, an object with
    `write_cloud_logging_entry(entry)`, which is called at once. The `background_…` parameters of ml-goodput-measurement
    are accepted and change nothing.

    All moments are datetimes (naive ones are local time) or POSIX seconds, by default now. A step may be an array on a
    device: it is read by another thread. What cannot be meant is dropped and told once on the logger `mldiagnostics`.

    `with recorder.step(n):` and its like record start and end; a step or job that an exception leaves has no end.
    """

    def __init__(
        self,
        job_name: str,
        logger_name: str,
        logging_enabled: bool = False,
        cloud_logger: Any = None,
        *,
        background_grace_period_s: float = 5.0,  # noqa: ARG002 - see above
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
        if logging_enabled:
            self._step_start = payload_maker(self.job_name, "step_start_time", step_key="step_count", needs_step=True)
            self._step_end = payload_maker(self.job_name, "step_end_time", step_key="step_count", needs_step=True)
            self._load_start = payload_maker(self.job_name, "data_loading_start_time")
            self._load_end = payload_maker(self.job_name, "data_loading_end_time")

    def record_job_start_time(self, start_time: Moment = None) -> None:
        """Record that the job begins, or begins again."""
        self._record("job_start_time", start_time)

    def record_job_end_time(self, end_time: Moment = None) -> None:
        """Record that the job is done."""
        self._record("job_end_time", end_time)

    def record_step_start_time(self, step: Any, start_time: Moment = None) -> None:
        """Record that a step begins."""
        if self._writer is not None:
            self._writer.write(self._step_start, start_time, step)

    def record_step_end_time(self, step: Any, end_time: Moment = None) -> None:
        """Record that a step is done: counts for the last step of an attempt, the others end where the next begins."""
        if self._writer is not None:
            self._writer.write(self._step_end, end_time, step)

    def record_tpu_init_start_time(self, start_time: Moment = None) -> None:
        """Record that accelerators begin to be initialised."""
        self._record("tpu_init_start_time", start_time)

    def record_tpu_init_end_time(self, end_time: Moment = None) -> None:
        """Record that accelerators are there."""
        self._record("tpu_init_end_time", end_time)

    def record_training_preparation_start_time(self, start_time: Moment = None) -> None:
        """Record that the training begins to be prepared."""
        self._record("training_prep_start_time", start_time)

    def record_training_preparation_end_time(self, end_time: Moment = None) -> None:
        """Record that the training is prepared."""
        self._record("training_prep_end_time", end_time)

    def record_data_loading_start_time(self, start_time: Moment = None) -> None:
        """Record that data begins to be loaded."""
        if self._writer is not None:
            self._writer.write(self._load_start, start_time)

    def record_data_loading_end_time(self, end_time: Moment = None) -> None:
        """Record that data is there."""
        if self._writer is not None:
            self._writer.write(self._load_end, end_time)

    def record_custom_badput_event_start_time(
        self, start_time: Moment = None, custom_badput_event_type: str = "unknown"
    ) -> None:
        """Record that something of a kind that the program names begins, like `EVAL`."""
        self._record(
            "custom_badput_event_start_time", start_time, custom_badput_event_type=short_text(custom_badput_event_type)
        )

    def record_custom_badput_event_end_time(
        self, end_time: Moment = None, custom_badput_event_type: str = "unknown"
    ) -> None:
        """Record that it is over."""
        kind = short_text(custom_badput_event_type)
        self._record("custom_badput_event_end_time", end_time, custom_badput_event_type=kind)

    def record_checkpoint_progress(self, step: Any, checkpoint_start_time: Moment) -> None:
        """Do nothing, as in ml-goodput-measurement: `record_checkpoint_save_start_time` tells of checkpoints."""

    def record_checkpoint_save_start_time(self, step: Any = None, start_time: Moment = None) -> None:
        """Record that training is held up by a checkpoint being saved, of `step` where it is known."""
        self._record_checkpoint("checkpoint_save_start_time", start_time, step)

    def record_checkpoint_save_end_time(self, step: Any = None, end_time: Moment = None) -> None:
        """Record that it is held up no longer."""
        self._record_checkpoint("checkpoint_save_end_time", end_time, step)

    def record_checkpoint_restore_start_time(self, step: Any = None, start_time: Moment = None) -> None:
        """Record that a checkpoint begins to be restored, of `step` where it is known."""
        self._record_checkpoint("checkpoint_restore_start_time", start_time, step)

    def record_checkpoint_restore_end_time(self, step: Any = None, end_time: Moment = None) -> None:
        """Record that it is restored."""
        self._record_checkpoint("checkpoint_restore_end_time", end_time, step)

    def record_program_startup_start_time(self, start_time: Moment = None) -> None:
        """Record that the program begins to be compiled."""
        self._record("program_startup_start_time", start_time)

    def record_program_startup_end_time(self, end_time: Moment = None) -> None:
        """Record that it is compiled."""
        self._record("program_startup_end_time", end_time)

    def record_disruption(self, cause: str, time: Moment = None) -> None:
        """Record why this attempt is about to end, like `preemption`."""
        self._record("disruption_time", time, disruption_cause=short_text(cause))

    def record_entry(self, entry: Mapping[str, Any]) -> None:
        """Record what Orbax says of a save or a restore that is over."""
        if self._writer is not None:
            self._writer.write(entry_maker(self.job_name, entry))

    def step(self, step: Any) -> Span:
        """Record the step that the block is."""
        return Span(self.record_step_start_time, self.record_step_end_time, step, whole=True)

    def job(self) -> Span:
        """Record the job that the block is."""
        return Span(self.record_job_start_time, self.record_job_end_time, whole=True)

    def event(self, custom_badput_event_type: str) -> Span:
        """Record the block as an event of a kind that the program names, like `EVAL`."""
        start, end = self.record_custom_badput_event_start_time, self.record_custom_badput_event_end_time
        return Span(start, end, None, custom_badput_event_type)

    def tpu_init(self) -> Span:
        """Record that the block initialises accelerators."""
        return Span(self.record_tpu_init_start_time, self.record_tpu_init_end_time)

    def training_preparation(self) -> Span:
        """Record that the block prepares the training."""
        return Span(self.record_training_preparation_start_time, self.record_training_preparation_end_time)

    def data_loading(self) -> Span:
        """Record that the block loads data."""
        return Span(self.record_data_loading_start_time, self.record_data_loading_end_time)

    def program_startup(self) -> Span:
        """Record that the block compiles the program."""
        return Span(self.record_program_startup_start_time, self.record_program_startup_end_time)

    def checkpoint_save(self, step: Any = None) -> Span:
        """Record that the block saves a checkpoint."""
        return Span(self.record_checkpoint_save_start_time, self.record_checkpoint_save_end_time, step)

    def checkpoint_restore(self, step: Any = None) -> Span:
        """Record that the block restores a checkpoint."""
        return Span(self.record_checkpoint_restore_start_time, self.record_checkpoint_restore_end_time, step)

    def flush(self) -> None:
        """Return when all that was recorded is in the log, or after 10 s."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Flush, and give threads and files back; recording again begins anew."""
        if self._writer is not None:
            self._writer.close()

    def _record(self, key: str, moment: object, **beside: Any) -> None:
        if self._writer is not None:
            self._writer.write(payload_maker(self.job_name, key, **beside), moment)

    def _record_checkpoint(self, key: str, moment: object, step: object) -> None:
        if self._writer is not None:
            self._writer.write(payload_maker(self.job_name, key, step_key="checkpoint_step"), moment, step)
