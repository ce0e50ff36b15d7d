"""`ElasticGoodputCalculator`: goodput of jobs whose slices come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mldiagnostics.goodput.queries.arguments import window
from mldiagnostics.goodput.queries.calculator import GoodputCalculator
from mldiagnostics.goodput.queries.locking import serialized

if TYPE_CHECKING:
    from datetime import datetime

    from mldiagnostics.goodput.queries.details import ElasticIntervalWorkloadMetricDetails, ElasticWorkloadMetricDetails


class ElasticGoodputCalculator(GoodputCalculator):
    """Computes goodput of elastic jobs: three more buckets, and slice efficiencies."""

    _elastic = True

    @serialized
    def get_job_goodput_details(self) -> ElasticWorkloadMetricDetails:  # type: ignore[explicit-override]
        """Return the last query of the whole job, with slice efficiencies (0-1).

        They are missing if no slices were recorded.
        """
        details = cast("ElasticWorkloadMetricDetails", super().get_job_goodput_details())
        shares = self._queries.slices(self._last_query.now) if self._last_query else None
        if shares is not None:
            details["stepping_slice_efficiency"], details["available_slice_efficiency"] = shares
        return details

    @serialized
    def get_interval_metric_details(  # type: ignore[explicit-override]
        self, interval_start: datetime, interval_end: datetime
    ) -> ElasticIntervalWorkloadMetricDetails:
        """Return goodput and badput of a window in per cent.

        Slice efficiencies (0-1) are missing if no slices were recorded.
        """
        window_details = super().get_interval_metric_details(interval_start, interval_end)
        details = cast("ElasticIntervalWorkloadMetricDetails", window_details)
        if details["interval_size"]:
            shares = self._queries.slices(self._now(), window(interval_start, interval_end))
            if shares is not None:
                details["stepping_slice_efficiency"], details["available_slice_efficiency"] = shares
        return details
