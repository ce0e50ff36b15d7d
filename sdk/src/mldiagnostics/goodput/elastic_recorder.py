"""`ElasticGoodputRecorder`: events of jobs whose slices come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.event_payloads import short_text
from mldiagnostics.goodput.recorder import GoodputRecorder
from mldiagnostics.goodput.spans import Span

if TYPE_CHECKING:
    from mldiagnostics.goodput.recorder import Moment

__all__ = ["ElasticGoodputRecorder"]


class ElasticGoodputRecorder(GoodputRecorder):
    """Records also what an elastic job does when slices go and come."""

    def record_elastic_slice_counts(
        self, active_slices: int, total_slices: int, available_slices: int, timestamp: Moment = None
    ) -> None:
        """Record how many slices train, belong to the job, and are there."""
        counts = {"active_slices": active_slices, "total_slices": total_slices, "available_slices": available_slices}
        self._record("elastic_slice_counts_timestamp", timestamp, **counts)

    def record_elastic_wait_start_time(self, event_type: str, start_time: Moment = None) -> None:
        """Record that the job begins to wait; `scale_up` in the type tells of more slices, any other of fewer."""
        self._record("elastic_wait_start_time", start_time, elastic_wait_event_type=short_text(event_type))

    def record_elastic_wait_end_time(self, event_type: str, end_time: Moment = None) -> None:
        """Record that the wait is over."""
        self._record("elastic_wait_end_time", end_time, elastic_wait_event_type=short_text(event_type))

    def record_elastic_reinit_start_time(self, start_time: Moment = None) -> None:
        """Record that the job begins to initialise itself again."""
        self._record("elastic_reinit_start_time", start_time)

    def record_elastic_reinit_end_time(self, end_time: Moment = None) -> None:
        """Record that it has."""
        self._record("elastic_reinit_end_time", end_time)

    def elastic_wait(self, event_type: str) -> Span:
        """Record that the block waits for slices."""
        return Span(self.record_elastic_wait_start_time, self.record_elastic_wait_end_time, event_type)

    def elastic_reinit(self) -> Span:
        """Record that the block initialises the job again."""
        return Span(self.record_elastic_reinit_start_time, self.record_elastic_reinit_end_time)
