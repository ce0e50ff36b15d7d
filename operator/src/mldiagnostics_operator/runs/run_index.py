"""The runs in memory, by every key under which their news arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.runs.keys import ObjectKey
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey

_KNOWN_ENDS: Final = 16_384

K = TypeVar("K")


class _RunsByKey(Generic[K]):
    """Runs by a key that several may share.

    One with a workload hides others, then the newest one does.
    """

    def __init__(self) -> None:
        self._runs: dict[K, list[Run]] = {}

    def items(self) -> Iterator[tuple[K, Run]]:
        """Return each key with its run."""
        return ((key, runs[0]) for key, runs in self._runs.items())

    def get(self, key: K) -> Run | None:
        """Return the run of a key."""
        return self._runs[key][0] if key in self._runs else None

    def add(self, key: K, run: Run) -> None:
        """Add a run."""
        self._runs[key] = sorted((run, *self._runs.get(key, ())), key=lambda each: each.workload is None)

    def remove(self, key: K, run: Run) -> None:
        """Remove this run, and no other one with its key."""
        self._runs[key] = [each for each in self._runs.get(key, ()) if each is not run]
        if not self._runs[key]:
            del self._runs[key]


class RunIndex:
    """Runs by object, by workload, by report and by pods."""

    def __init__(self) -> None:
        self._runs: dict[ObjectKey, Run] = {}
        self._by_workload: _RunsByKey[str] = _RunsByKey()
        self._by_report: _RunsByKey[RunKey] = _RunsByKey()
        self._by_pods: _RunsByKey[LabelKey] = _RunsByKey()
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
        return self._by_pods.get(key) is not None

    def add(self, run: Run) -> Run:
        """Add a run in place of an earlier object of its name, and return it."""
        if (earlier := self._runs.get(run.key)) is not None:
            self.remove(earlier)
        self._runs[run.key] = run
        if run.workload and run.workload.uid:
            self._by_workload.add(run.workload.uid, run)
        if run.run_id:
            self._by_report.add(run.report_key, run)
            self._by_pods.add(run.pods_key, run)
        return run

    def remove(self, run: Run) -> None:
        """Forget a run, but not that it has ended."""
        if run in self:
            del self._runs[run.key]
        self._by_report.remove(run.report_key, run)
        self._by_pods.remove(run.pods_key, run)
        if run.workload and run.workload.uid:
            self._by_workload.remove(run.workload.uid, run)

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
