"""The runs in memory, by every key under which their news arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.runs.keys import ObjectKey
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey

_KNOWN_ENDS: Final = 16_384


class RunIndex:
    """Runs by object, by workload, by report and by pods."""

    def __init__(self) -> None:
        self._runs: dict[ObjectKey, Run] = {}
        self._by_workload: dict[str, Run] = {}
        self._by_report: dict[RunKey, Run] = {}
        self._by_pods: dict[LabelKey, Run] = {}
        self._ended: set[str] = set()
        """Uids of existing workloads whose run is finished."""
        self._reported_ends: dict[RunKey, None] = {}
        """Runs of workloads that are finished: late reports make no other object of them."""

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run: Run) -> bool:
        return self._runs.get(run.key) is run

    @property
    def all(self) -> tuple[Run, ...]:
        """All runs, as they are now."""
        return tuple(self._runs.values())

    @property
    def unfinished(self) -> Collection[RunKey]:
        """The keys of the runs that have not ended."""
        return [key for key, run in self._by_report.items() if not run.finished]

    def get(self, key: ObjectKey) -> Run | None:
        """Return the run of an object."""
        return self._runs.get(key)

    def of_workload(self, uid: str) -> Run | None:
        """Return the run of a workload."""
        return self._by_workload.get(uid)

    def of_report(self, key: RunKey) -> Run | None:
        """Return the run that processes report under a key."""
        return self._by_report.get(key)

    def of_pods(self, key: LabelKey) -> Run | None:
        """Return the run whose pods have a label."""
        return self._by_pods.get(key)

    def has_pods(self, key: LabelKey) -> bool:
        """Return whether a run has the pods with a label."""
        return key in self._by_pods

    def add(self, run: Run) -> Run:
        """Add a run, and return it."""
        self._runs[run.key] = run
        if run.workload and run.workload.uid:
            self._by_workload[run.workload.uid] = run
        if run.run_id:
            self._by_report[run.report_key] = run
            self._by_pods[run.pods_key] = run
        return run

    def remove(self, run: Run) -> None:
        """Forget a run, but not that it has ended."""
        self._runs.pop(run.key, None)
        self._by_report.pop(run.report_key, None)
        self._by_pods.pop(run.pods_key, None)
        if run.workload and run.workload.uid:
            self._by_workload.pop(run.workload.uid, None)

    def note_end(self, run: Run) -> None:
        """Remember that a workload and its reports have a finished run."""
        if run.workload and run.workload.uid and not run.gone:
            self._ended.add(run.workload.uid)
        if len(self._reported_ends) >= _KNOWN_ENDS:
            self._reported_ends.pop(next(iter(self._reported_ends)))
        self._reported_ends[run.report_key] = None

    def note_no_run(self, uid: str) -> None:
        """Remember that an existing workload gets no run."""
        self._ended.add(uid)

    def note_deleted(self, uid: str) -> None:
        """Forget a workload that does not exist any more."""
        self._ended.discard(uid)

    def has_ended(self, uid: str) -> bool:
        """Return whether a workload has had its run, or gets none."""
        return uid in self._ended

    def has_end_of(self, key: RunKey) -> bool:
        """Return whether reports belong to a run of a workload that is finished."""
        return key in self._reported_ends
