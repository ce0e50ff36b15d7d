"""Upload goodput of elastic jobs, by the names of ml-goodput-measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.compat.monitoring import GoodputMonitor
from mldiagnostics.lazy_names import lazy_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from mldiagnostics.goodput.google_cloud import GCPOptions

__all__ = ["ElasticGoodputMonitor", "GCPOptions"]


class ElasticGoodputMonitor(GoodputMonitor):
    """A `GoodputMonitor` that also uploads the shares of used and available slices."""

    def __init__(  # noqa: PLR0917 - the order of ml-goodput-measurement
        self,
        job_name: str,
        logger_name: str,
        tensorboard_dir: str,
        upload_interval: float = 30,  # ml-goodput-measurement's own example leaves it out
        monitoring_enabled: bool = False,
        include_badput_breakdown: bool = False,
        include_step_deviation: bool = False,
        include_slice_efficiency: bool = False,
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
        super().__init__(
            job_name,
            logger_name,
            tensorboard_dir,
            upload_interval,
            monitoring_enabled=monitoring_enabled,
            include_badput_breakdown=include_badput_breakdown,
            include_step_deviation=include_step_deviation,
            configured_ideal_step_time=configured_ideal_step_time,
            step_deviation_interval_seconds=step_deviation_interval_seconds,
            gcp_options=gcp_options,
            skip_final_flush=skip_final_flush,
            final_flush_timeout_seconds=final_flush_timeout_seconds,
            gcs_sync_interval_seconds=gcs_sync_interval_seconds,
            cache_dir=cache_dir,
            max_logs_retention_period=max_logs_retention_period,
            log=log,
            exports=exports,
        )
        self._arguments["slices"] = include_slice_efficiency


__getattr__, __dir__ = lazy_names(globals(), {"GCPOptions": "mldiagnostics.goodput.google_cloud"})
