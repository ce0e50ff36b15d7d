"""The index of runs, where several objects have one run id, or one name after the other."""

from __future__ import annotations

import itertools

import pytest
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.runs.run import Run, run_manifest
from mldiagnostics_operator.runs.run_index import RunIndex

WORKLOAD = {"apiVersion": "batch/v1", "kind": "Job", "name": "trainer", "uid": "job"}


def run_of(name: str, *, workload: dict[str, str] | None = None, uid: str = "") -> Run:
    body = run_manifest(name, "ml", "id", workload=workload)
    body["metadata"] |= {"uid": uid or name, "resourceVersion": "1"}
    return Run.of(body)


def with_news(index: RunIndex, run: Run) -> tuple[Run | None, Run | None]:
    """Return the runs that receive the news of reports, and of pods."""
    return index.of_report(RunKey("ml", "id")), index.of_pods(run.pods_key)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_the_object_with_a_workload_has_the_news_of_its_run_id(order: tuple[int, ...]) -> None:
    runs = [run_of("reported"), run_of("trainer", workload=WORKLOAD), run_of("by-hand")]
    index = RunIndex()
    for number in order:
        index.add(runs[number])
    assert with_news(index, runs[1]) == (runs[1], runs[1])
    assert index.unfinished == [RunKey("ml", "id")]


@pytest.mark.parametrize("kept", ["trainer", "reported"])
def test_the_removal_of_one_object_leaves_the_news_to_the_other(kept: str) -> None:
    runs = {"trainer": run_of("trainer", workload=WORKLOAD), "reported": run_of("reported")}
    index = RunIndex()
    for run in runs.values():
        index.add(run)
    other = runs.pop(kept)
    [removed] = runs.values()
    index.remove(removed)
    assert with_news(index, other) == (other, other)
    assert index.all == (other,)
    index.remove(other)
    assert with_news(index, other) == (None, None)
    assert not index.has_pods(other.pods_key)


def test_of_two_objects_of_one_workload_the_other_stays_when_one_is_removed() -> None:
    index = RunIndex()
    first, second = (index.add(run_of(name, workload=WORKLOAD)) for name in ("first", "second"))
    assert index.of_workload("job") is second
    index.remove(second)
    assert index.of_workload("job") is first


def test_an_object_takes_the_place_of_an_earlier_one_of_its_name() -> None:
    index = RunIndex()
    earlier = index.add(run_of("trainer", workload=WORKLOAD, uid="earlier"))
    later = index.add(run_of("trainer", uid="later"))
    assert index.of_workload("job") is None
    assert with_news(index, later) == (later, later)
    index.remove(earlier)  # its reconciler learns of the deletion late
    assert later in index
    assert with_news(index, later) == (later, later)
