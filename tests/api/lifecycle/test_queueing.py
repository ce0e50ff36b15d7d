from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.disruptions import DisruptionCause
from mldiagnostics_api.lifecycle import QUEUE_LABEL, Lifecycle, lifecycle
from mldiagnostics_api.lifecycle.queueing import QueueVerdict, combined, owner_uids, queue_verdict, queued
from mldiagnostics_api.workloads.kinds import workload_of
from support.cluster import builders as a

SEEN = datetime(2026, 4, 24, 3, 5, tzinfo=UTC)
SHORT = "couldn't assign flavors to pod set main: insufficient unused quota for cpu"
WHY = "Preempted to accommodate a workload (UID: 5c0) due to prioritization in the ClusterQueue"


def workload(*conditions: tuple[str, str, str, str], **status: Any) -> a.Object:
    made = a.thing("job-trainer", kind="Workload", api_version="kueue.x-k8s.io/v1beta2")
    fields = ("type", "status", "reason", "message")
    listed = [dict(zip(fields, each, strict=True), lastTransitionTime=a.CREATED) for each in conditions]
    return made | {"status": {"conditions": listed, **status}}


def verdict(*conditions: tuple[str, str, str, str], **status: Any) -> QueueVerdict:
    return queue_verdict(workload(*conditions, **status), seen=SEEN)


PENDING = ("QuotaReserved", "False", "Pending", SHORT)
PREEMPTED = (
    PENDING,
    ("Evicted", "True", "Preempted", WHY),
    ("Preempted", "True", "InClusterQueue", f"{WHY}; node 1"),
    ("Admitted", "False", "NoReservation", "The workload has no reservation"),
)


@pytest.mark.parametrize(
    ("conditions", "reason", "message"),
    [
        ((), "Pending", ""),
        ((PENDING,), "Pending", SHORT),
        ((("QuotaReserved", "False", "Inadmissible", "LocalQueue tpu\ndoesn't exist"),), "Inadmissible", "*"),
        (PREEMPTED, "Preempted", f"{WHY}; node 1; {SHORT}"),
        ((("Evicted", "True", "Deactivated", "The workload is deactivated"),), "Deactivated", "*"),
        ((("Evicted", "False", "QuotaReserved", "Previously: x"), PENDING), "Pending", SHORT),
    ],
)
def test_a_workload_that_waits_has_the_reason_of_its_queue(conditions: Any, reason: str, message: str) -> None:
    result = verdict(*conditions)
    assert (result.admitted, result.reason) == (False, reason)
    assert message in ("*", result.message)
    assert "\n" not in result.message


def test_an_eviction_is_evidence_until_the_workload_is_admitted_again() -> None:
    evicted = verdict(*PREEMPTED).evicted
    assert evicted is not None
    assert (evicted.cause, evicted.subject) == (DisruptionCause.PREEMPTION, "Workload 'job-trainer'")
    admitted = verdict(("QuotaReserved", "True", "QuotaReserved", ""), ("Admitted", "True", "Admitted", ""))
    assert admitted == QueueVerdict(admitted=True, reason="Admitted", message="")


def test_open_admission_checks_are_named() -> None:
    checks = [{"name": "nodes", "state": "Pending", "message": "scaling up"}, {"name": "budget", "state": "Ready"}]
    result = verdict(("QuotaReserved", "True", "QuotaReserved", ""), admissionChecks=checks)
    assert (result.reason, result.message) == ("AdmissionChecks", "admission check 'nodes' is Pending: scaling up")


def test_a_workload_of_kueue_names_its_owners() -> None:
    made = workload()
    assert owner_uids(made) == ()
    made["metadata"] |= {
        "labels": {"kueue.x-k8s.io/job-uid": "u-1"},
        "ownerReferences": [{"uid": "u-1"}, {"uid": "u-2"}],
    }
    assert owner_uids(made) == ("u-1", "u-2")


def state(kind: str, spec: dict[str, Any], **labels: str) -> Lifecycle:
    entry = workload_of(kind)
    assert entry is not None
    return lifecycle(entry, {"metadata": {"labels": labels}, "spec": spec, "status": {}})


@pytest.mark.parametrize("kind", ["JobSet", "LeaderWorkerSet"])
def test_the_verdict_explains_what_the_workload_itself_does_not_say(kind: str) -> None:
    """A JobSet shows its suspension, a LeaderWorkerSet nothing: its pods have a gate."""
    own = state(kind, {"suspend": True}, **{QUEUE_LABEL: "tpu"})
    waiting = queued(own, verdict(PENDING))
    assert (waiting.admitted, waiting.suspended, waiting.reason, waiting.admission) == (
        False,
        True,
        "Queued",
        "Pending",
    )
    assert waiting.message.endswith(f"in queue tpu: {SHORT}")
    admitted = QueueVerdict(admitted=True, reason="Admitted", message="")
    assert queued(own, admitted).admitted is (kind == "LeaderWorkerSet")  # the JobSet is still suspended
    assert queued(own, None) == own
    unrelated = state(kind, {})
    assert queued(unrelated, verdict(PENDING)) == unrelated


VERDICTS = st.builds(
    QueueVerdict, admitted=st.booleans(), reason=st.sampled_from(["Pending", "Preempted"]), message=st.text(max_size=3)
)


@given(st.lists(VERDICTS, max_size=4))
def test_one_group_that_waits_holds_the_workload_back(verdicts: list[QueueVerdict]) -> None:
    result = combined(verdicts)
    if result is None:
        assert not verdicts
    else:
        assert result in verdicts
        assert result.admitted is all(each.admitted for each in verdicts)
        assert combined(verdicts[::-1]) == result or result.admitted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["uid", "name", "state"]), inner),
)


@given(st.fixed_dictionaries({}, optional={"labels": JSON, "ownerReferences": JSON}), JSON)
def test_no_workload_breaks_the_reader(metadata: dict[str, Any], checks: Any) -> None:
    reserved = {"type": "QuotaReserved", "status": "True"}
    item = {"metadata": {"name": "w", **metadata}, "status": {"conditions": [reserved], "admissionChecks": checks}}
    assert not queue_verdict(item, seen=SEEN).admitted
    assert all(owner_uids(item))
