"""`ElasticGoodputRecorder`: events of jobs whose slices come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.events.payloads import short_text
from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from mldiagnostics.goodput.recording.spans import Span

if TYPE_CHECKING:
    from mldiagnostics.goodput.recording.recorder import Moment


class ElasticGoodputRecorder(GoodputRecorder):
    """Records also the events of an elastic job whose slices come and go."""

    def record_elastic_slice_counts(
        self, active_slices: int, total_slices: int, available_slices: int, timestamp: Moment = None
    ) -> None:
        """Record the numbers of training slices, of all slices, and of available slices."""
        counts = {"active_slices": active_slices, "total_slices": total_slices, "available_slices": available_slices}
        self._record("elastic_slice_counts_timestamp", timestamp, **counts)

    def record_elastic_wait_start_time(self, event_type: str, start_time: Moment = None) -> None:
        """Record that the job starts to wait for slices.

        A type with `scale_up` means that slices are added, any other type that slices were lost.
        """
        self._record("elastic_wait_start_time", start_time, elastic_wait_event_type=short_text(event_type))

    def record_elastic_wait_end_time(self, event_type: str, end_time: Moment = None) -> None:
        """Record that a wait for slices has ended."""
        self._record("elastic_wait_end_time", end_time, elastic_wait_event_type=short_text(event_type))

    def record_elastic_reinit_start_time(self, start_time: Moment = None) -> None:
        """Record that the re-initialization of the job starts."""
        self._record("elastic_reinit_start_time", start_time)

    def record_elastic_reinit_end_time(self, end_time: Moment = None) -> None:
        """Record that the job is initialized again."""
        self._record("elastic_reinit_end_time", end_time)

    def elastic_wait(self, event_type: str) -> Span:
        """Record a block as a wait for slices."""
        return Span(self.record_elastic_wait_start_time, self.record_elastic_wait_end_time, event_type)

    def elastic_reinit(self) -> Span:
        """Record a block as a re-initialization of the job."""
        return Span(self.record_elastic_reinit_start_time, self.record_elastic_reinit_end_time)
