from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_operator.control_plane.identity.deleted_pods import DeletedPods
from mldiagnostics_operator.runs.watches import run_pods
from mldiagnostics_operator.runs.watches.run_pods import LabelKey, RunPodStore
from support.cluster import builders as a

if TYPE_CHECKING:
    import pytest

KEY = ("ml", "f" * 32)


class Seen:
    """A store of pods, and the keys that it passed on."""

    def __init__(self) -> None:
        self.changed: list[LabelKey] = []
        self.ended: list[LabelKey] = []
        self.followed = {KEY}
        self.deleted = DeletedPods()
        self.started: list[LabelKey] = []
        self.store = RunPodStore(
            self.changed.append,
            self.ended.append,
            self.followed.__contains__,
            started=self.started.append,
            deleted=self.deleted,
        )


def pod(name: str = "w-0", *, attempt: int | None = None, **changes: Any) -> a.Object:
    labels = {RUN_LABEL: KEY[1]} | ({} if attempt is None else {"jobset.sigs.k8s.io/restart-attempt": str(attempt)})
    made = a.pod(name, labels=labels, **changes)
    made["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": a.CREATED}]
    return made


def failed(name: str, code: int = 1) -> a.Object:
    made = pod(name, phase="Failed")
    ended = {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": a.CREATED}}
    made["status"]["containerStatuses"][0]["state"] = ended
    return made


def names(seen: Seen, attempt: int = 0) -> list[str]:
    run = seen.store.of(KEY)
    return sorted(each.name for each in run.of_attempt(attempt)) if run else []


def test_the_live_pods_of_the_attempt_are_those_that_start() -> None:
    seen = Seen()
    for item in (
        pod("old", attempt=0),
        pod("new", attempt=1),
        pod("any"),
        failed("dead"),
        pod("end", terminating=True),
    ):
        seen.store.put(item)
    assert names(seen, attempt=1) == ["any", "new"]
    assert seen.changed == [KEY] * 5
    seen.store.put(pod("any"))
    assert len(seen.changed) == 5  # nothing that counts has changed
    seen.store.put(a.pod("foreign"))
    assert len(seen.store) == 5


def test_a_pod_that_ended_leaves_its_evidence_and_is_examined() -> None:
    seen = Seen()
    seen.store.put(pod("w-0"))
    assert seen.ended == []
    seen.store.put(failed("w-0"))
    seen.store.remove(failed("w-0"))
    run = seen.store.of(KEY)
    assert run is not None
    assert [(item.subject, item.cause) for item in run.evidence.values()] == [("pod 'w-0'", "ExitCode")]
    assert [(each.uid, each.node) for each in run.ended.values()] == [(a.uid_of("Pod", "w-0"), "")]
    assert len(seen.store) == 0
    seen.store.put(pod("w-1", terminating=True))
    assert [each.node for each in run.ended.values()] == ["", "node-1"]  # the node may be lost
    assert set(seen.ended) == {KEY}


def test_pods_that_are_gone_after_a_list_leave_no_cause() -> None:
    seen = Seen()
    seen.store.put(pod("w-0"))
    seen.store.put(pod("w-1"))
    seen.store.keep_only({"ml/w-1"})
    assert names(seen) == ["w-1"]
    assert seen.ended == []


def test_pods_evidence_and_examinations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pods, "MAX_PODS", 300)
    seen = Seen()
    for number in range(320):
        seen.store.put(failed(f"w-{number}"))
    run = seen.store.of(KEY)
    assert run is not None
    assert (len(seen.store), seen.store.left_out) == (300, 20)
    assert (len(run.evidence), len(run.ended)) == (run_pods.MAX_EVIDENCE, run_pods.MAX_ENDED)
    seen.store.forget(KEY)
    assert (len(run.evidence), len(run.ended)) == (0, 0)
    seen.followed.clear()
    seen.store.keep_only(set())
    assert seen.store.of(KEY) is None  # the evidence of a run that ended does not stay


def test_deletions_are_passed_on_while_somebody_receives_them() -> None:
    seen = Seen()
    gone: list[str] = []
    missed: list[bool] = []
    with seen.deleted.passed_to(gone.append, lambda: missed.append(True)):
        seen.store.put(pod("w-0"))
        seen.store.remove(pod("w-0"))
        seen.store.remove(pod("unknown"))  # there may have been no room for it
        seen.store.keep_only(set())
    seen.store.remove(pod("later"))
    assert gone == [pod("w-0")["metadata"]["uid"], pod("unknown")["metadata"]["uid"]]
    assert missed == [True]
