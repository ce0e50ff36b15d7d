"""Upload goodput while the job runs, by the names of ml-goodput-measurement.

A process of its own reads and computes, not the training process. By default it reads the log of a `GoodputRecorder` of
the same two names, and uploads to TensorBoard and, on Google Cloud, to Cloud Monitoring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.lazy_names import lazy_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from mldiagnostics.goodput.google_cloud import GCPOptions
    from mldiagnostics.goodput.monitor.uploading import Uploaders

__all__ = ["GCPOptions", "GoodputMonitor"]

_FOREVER_S = 600.0
"""Time limit of a stop without one, in seconds, so that a monitor never blocks the training."""

_SKIPPING_S = 1.0


class GoodputMonitor:
    """Uploads the goodput of a job at intervals; never raises.

    Args:
        job_name: Name of the job.
        logger_name: Name of the logger.
        tensorboard_dir: Directory of TensorBoard, a path or URL such as `gs://…`; empty for none. In a bucket it also
            gets a copy of the cache, for the job's next machine.
        upload_interval: Seconds between uploads.
        monitoring_enabled: Whether this process uploads; set it on one process.
        pathway_enabled: Accepted and ignored: one controller records for all workers.
        include_badput_breakdown: Upload badput by type.
        include_step_deviation: Upload deviations of steps from the ideal step time.
        configured_ideal_step_time: Ideal step time in seconds. Default: computed from the steps.
        step_deviation_interval_seconds: Seconds between uploads of step deviations.
        gcp_options: Options of Cloud Monitoring.
        skip_final_flush: Do not upload at the end.
        final_flush_timeout_seconds: Time limit of the last upload; None means ten minutes. Then its process is killed.
        gcs_sync_interval_seconds: Seconds between copies of the cache to the bucket.
        cache_dir: Directory of the cache.
        max_logs_retention_period: Age of the oldest log entries that are read.
        log: Location of the log. Default: derived from the two names.
        exports: URLs of further destinations, like `sinks=` of a run: `prometheus::9464`, `otlp:`, `jsonl:`, ….
            Default: MLDIAG_GOODPUT_EXPORTS.

    Example:
        >>> from mldiagnostics import monitoring
        >>> monitor = monitoring.GoodputMonitor("job", "goodput_job", "gs://bucket/logs", 30, monitoring_enabled=True)
        >>> monitor.start_goodput_uploader()  # doctest: +SKIP
    """

    def __init__(  # noqa: PLR0917 - the order of ml-goodput-measurement
        self,
        job_name: str,
        logger_name: str,
        tensorboard_dir: str,
        upload_interval: float,
        monitoring_enabled: bool = False,
        pathway_enabled: bool = False,  # noqa: ARG002 - accepted for compatibility
        include_badput_breakdown: bool = False,
        include_step_deviation: bool = False,
        configured_ideal_step_time: float | None = None,
        step_deviation_interval_seconds: float = 10,
        gcp_options: GCPOptions | None = None,
        skip_final_flush: bool = False,
        final_flush_timeout_seconds: float | None = 10,
        gcs_sync_interval_seconds: float = 3600,
        cache_dir: str = "/tmp",  # noqa: S108 - the default of ml-goodput-measurement
        max_logs_retention_period: timedelta | float | None = None,
        *,
        log: str | None = None,
        exports: Sequence[str] | str | None = None,
    ) -> None:
        self._enabled = bool(monitoring_enabled)
        self._deviations = bool(include_step_deviation)
        self._skip = bool(skip_final_flush)
        self._timeout_s = _FOREVER_S if final_flush_timeout_seconds is None else final_flush_timeout_seconds
        self._running: Uploaders | None = None
        self._arguments: dict[str, Any] = {
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
        """Start to upload the goodput of the whole job."""
        self._start("goodput")

    def stop_goodput_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time, unless skipped, and stop."""
        self._stop("goodput", skip_final_flush)

    def start_step_deviation_uploader(self) -> None:
        """Start to upload step deviations, if `include_step_deviation`."""
        if self._deviations:
            self._start("step deviation")

    def stop_step_deviation_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time, unless skipped, and stop."""
        if self._deviations:
            self._stop("step deviation", skip_final_flush)

    def start_rolling_window_goodput_uploader(self, rolling_windows_seconds: Sequence[int]) -> None:
        """Start to upload the goodput of windows of these lengths in seconds."""
        self._start("rolling windows", windows=rolling_windows_seconds)

    def stop_rolling_window_goodput_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time, unless skipped, and stop."""
        self._stop("rolling windows", skip_final_flush)

    def start_goodput_interval_uploader(self, window_size_seconds: int) -> None:
        """Start to upload the goodput of one window (name of older versions)."""
        self._start("goodput interval", windows=[window_size_seconds])

    def stop_goodput_interval_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Upload a last time, unless skipped, and stop (name of older versions)."""
        self._stop("goodput interval", skip_final_flush)

    def _start(self, name: str, windows: Sequence[int] = ()) -> None:
        if not self._enabled:
            return
        try:
            self._uploaders().start(name, windows=_lengths(windows))
        except Exception as error:  # noqa: BLE001 - an argument of any type must not end the training
            _warn(f"the uploader of {name} cannot be started: {error}")

    def _stop(self, name: str, skip_final_flush: bool | None) -> None:
        if not self._enabled:
            return
        skip = self._skip if skip_final_flush is None else skip_final_flush
        try:
            timeout_s = min(float(self._timeout_s), _SKIPPING_S) if skip else float(self._timeout_s)
            self._uploaders().stop([name], flush=not skip, timeout_s=timeout_s)
        except Exception as error:  # noqa: BLE001 - the same
            _warn(f"the uploader of {name} cannot be stopped: {error}")

    def _uploaders(self) -> Uploaders:
        """Return the uploaders, imported at the first call."""
        if self._running is None:
            from mldiagnostics.goodput.monitor.assignment import assign  # noqa: PLC0415 - with the first uploader
            from mldiagnostics.goodput.monitor.uploading import Uploaders  # noqa: PLC0415 - the same

            self._running = Uploaders(assign(**self._arguments))
        return self._running


def _lengths(windows: Sequence[int]) -> list[int]:
    lengths = [int(window) for window in windows]
    if any(length <= 0 for length in lengths):
        raise ValueError(f"{windows!r} are not all numbers of seconds above 0")
    return lengths


def _warn(problem: str) -> None:
    from mldiagnostics.diagnostics import warn_once  # noqa: PLC0415 - brings logging

    warn_once("goodput-monitor", f"goodput monitor: {problem}")


__getattr__, __dir__ = lazy_names(globals(), {"GCPOptions": "mldiagnostics.goodput.google_cloud"})
