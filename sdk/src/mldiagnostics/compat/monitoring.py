"""Goodput while the job runs, by the names of ml-goodput-measurement: uploads at intervals, from a process of its own.

Nothing is computed, read or looked up in the training process. Without an argument that says otherwise the monitor
reads the log that a `GoodputRecorder` of the same two names writes, and tells TensorBoard and, on Google Cloud, Cloud
Monitoring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from mldiagnostics.goodput.google_cloud import GCPOptions
    from mldiagnostics.goodput.monitor.uploading import Uploaders

__all__ = ["GCPOptions", "GoodputMonitor"]

_FOREVER_S = 600.0
"""How long a stop waits where it is told to wait without end: no training hangs because of its monitor."""

_SKIPPING_S = 1.0


class GoodputMonitor:
    """Tells how a job spends its time, every `upload_interval` seconds, as long as its uploaders run.

    `tensorboard_dir` is a path or `gs://…`, empty for none. `exports` are further places by URL, as `sinks=` of a run
    has them (`prometheus::9464`, `otlp:`, `jsonl:`, …), else those of MLDIAG_GOODPUT_EXPORTS. `log` is where the log
    is, if not where the two names lead. `configured_ideal_step_time` is in seconds.

    An upload at the end is waited for `final_flush_timeout_seconds`, with None ten minutes; then the process that does
    it is killed. Where `tensorboard_dir` is in a bucket, a copy of what was read goes there every
    `gcs_sync_interval_seconds` and at the end, for the job's next machine. `pathway_enabled` is accepted and changes
    nothing: one controller records for all workers. Nothing here raises.
    """

    def __init__(  # noqa: PLR0917 - the order of ml-goodput-measurement
        self,
        job_name: str,
        logger_name: str,
        tensorboard_dir: str,
        upload_interval: float,
        monitoring_enabled: bool = False,
        pathway_enabled: bool = False,  # noqa: ARG002 - see above
        include_badput_breakdown: bool = False,
        include_step_deviation: bool = False,
        configured_ideal_step_time: float | None = None,
        step_deviation_interval_seconds: float = 10,
        gcp_options: GCPOptions | None = None,
        skip_final_flush: bool = False,
        final_flush_timeout_seconds: float | None = 10,
        gcs_sync_interval_seconds: float = 3600,
        cache_dir: str = "/tmp",  # noqa: S108 - the place of ml-goodput-measurement
        max_logs_retention_period: timedelta | float | None = None,
        *,
        log: str | None = None,
        exports: Sequence[str] | str | None = None,
    ) -> None:
        self._enabled = bool(monitoring_enabled)
        self._deviations = bool(include_step_deviation)
        self._skip = bool(skip_final_flush)
        self._timeout_s = _FOREVER_S if final_flush_timeout_seconds is None else final_flush_timeout_seconds
        self._made: Uploaders | None = None
        self._said: dict[str, Any] = {
            "job_name": job_name,
            "logger_name": logger_name,
            "log": log,
            "tensorboard": tensorboard_dir,
            "interval_s": upload_interval,
            "deviation_interval_s": step_deviation_interval_seconds,
            "badput": include_badput_breakdown,
            "slices": False,
            "ideal_step_time_s": configured_ideal_step_time,
            "retention": max_logs_retention_period,
            "cache_dir": cache_dir,
            "copy_interval_s": gcs_sync_interval_seconds,
            "flush_s": None if self._skip else self._timeout_s,
            "gcp": gcp_options,
            "exports": exports,
        }

    def start_goodput_uploader(self) -> None:
        """Begin to upload the goodput of the whole job."""
        self._start("goodput")

    def stop_goodput_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time and stop."""
        self._stop("goodput", skip_final_flush)

    def start_step_deviation_uploader(self) -> None:
        """Begin to upload how far steps are from the ideal, if `include_step_deviation`."""
        if self._deviations:
            self._start("step deviation")

    def stop_step_deviation_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time and stop."""
        if self._deviations:
            self._stop("step deviation", skip_final_flush)

    def start_rolling_window_goodput_uploader(self, rolling_windows_seconds: Sequence[int]) -> None:
        """Begin to upload the goodput of the last so many seconds, for each of these numbers."""
        self._start("rolling windows", windows=rolling_windows_seconds)

    def stop_rolling_window_goodput_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time and stop."""
        self._stop("rolling windows", skip_final_flush)

    def start_goodput_interval_uploader(self, window_size_seconds: int) -> None:
        """Begin to upload the goodput of one window: the name of older versions."""
        self.start_rolling_window_goodput_uploader([window_size_seconds])

    def stop_goodput_interval_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time and stop: the name of older versions."""
        self.stop_rolling_window_goodput_uploader(skip_final_flush)

    def _start(self, name: str, windows: Sequence[int] = ()) -> None:
        if not self._enabled:
            return
        try:
            self._uploaders().start(name, windows=_lengths(windows))
        except Exception as error:  # noqa: BLE001 - what was passed here must not end the training
            _complain(f"the uploader of {name} is not started: {error}")

    def _stop(self, name: str, skip_final_flush: bool | None) -> None:
        if not self._enabled:
            return
        skip = self._skip if skip_final_flush is None else skip_final_flush
        try:
            timeout_s = min(float(self._timeout_s), _SKIPPING_S) if skip else float(self._timeout_s)
            self._uploaders().stop([name], flush=not skip, timeout_s=timeout_s)
        except Exception as error:  # noqa: BLE001 - the same
            _complain(f"the uploader of {name} is not stopped: {error}")

    def _uploaders(self) -> Uploaders:
        """Return what runs the uploaders; the first to ask for it pays for its import."""
        if self._made is None:
            from mldiagnostics.goodput.monitor.assignment import assign  # noqa: PLC0415 - with the first uploader
            from mldiagnostics.goodput.monitor.uploading import Uploaders  # noqa: PLC0415 - the same

            self._made = Uploaders(assign(**self._said))
        return self._made


def _lengths(windows: Sequence[int]) -> list[int]:
    lengths = [int(window) for window in windows]
    if any(length <= 0 for length in lengths):
        raise ValueError(f"{windows!r} are not all numbers of seconds above 0")
    return lengths


def _complain(problem: str) -> None:
    from mldiagnostics.diagnostics import warn_once  # noqa: PLC0415 - brings logging

    warn_once("goodput-monitor", f"goodput is not monitored as asked: {problem}")


def __getattr__(name: str) -> object:
    if name == "GCPOptions":
        from mldiagnostics.goodput.google_cloud import GCPOptions  # noqa: PLC0415 - who has options

        return GCPOptions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
