"""Properties of the pure decision: any inputs, decided twice."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.disruptions import DisruptionCause, Evidence
from mldiagnostics_api.lifecycle import Lifecycle
from mldiagnostics_api.lifecycle.queueing import QueueVerdict
from mldiagnostics_api.lifecycle.startup import PodStartup
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSession
from mldiagnostics_operator.runs.status.next_status import RunInputs, next_status, run_events
from mldiagnostics_operator.runs.watches.run_pods import PodsOfRun, RunPod
from support.cluster import builders

NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
MOMENTS = st.integers(-600, 0).map(lambda seconds: NOW + timedelta(seconds=seconds))
COUNTS = {"attempt": st.integers(0, 3), "hosts": st.integers(1, 4), "queue": st.sampled_from(("", "tpu"))}
LIFECYCLES = st.one_of(
    st.builds(Lifecycle, reason=st.just("Starting"), **COUNTS),
    st.builds(Lifecycle, reason=st.sampled_from(("Queued", "Suspended")), suspended=st.just(True), **COUNTS),  # noqa: FBT003
    st.builds(Lifecycle, phase=st.just(MLRunPhase.ACTIVE), reason=st.just("Running"), **COUNTS),
    st.builds(Lifecycle, phase=st.sampled_from(sorted(FINISHED_RUN_PHASES)), ended=st.none() | MOMENTS, **COUNTS),
)
EVIDENCE = st.builds(
    Evidence,
    cause=st.sampled_from(DisruptionCause),
    time=MOMENTS,
    subject=st.sampled_from(("pod 'w-0'", "node 'n'")),
    detail=st.just("exit code 1"),
)
VERDICTS = st.builds(
    QueueVerdict, admitted=st.booleans(), reason=st.just("Pending"), message=st.just("no quota"), evicted=st.none()
)


@st.composite
def pods_of_runs(draw: st.DrawFn) -> PodsOfRun:
    names = draw(st.sets(st.sampled_from(("w-0", "w-1")), max_size=2))
    attempts = st.none() | st.integers(0, 3)
    pods = {
        name: RunPod(
            uid=name, live=draw(st.booleans()), attempt=draw(attempts), startup=PodStartup.of(builders.pod(name))
        )
        for name in names
    }
    evidence = {(item.subject, item.cause): item for item in draw(st.lists(EVIDENCE, max_size=3))}
    return PodsOfRun(pods=pods, evidence=evidence, pulls=draw(st.dictionaries(st.sampled_from(("w-0",)), MOMENTS)))


INPUTS = st.builds(
    RunInputs,
    facts=st.builds(
        RunFacts, run_id=st.just("r"), workload=st.just("JobSet/w"), lifecycle=LIFECYCLES, gone=st.booleans()
    ),
    created=st.none() | MOMENTS,
    queue=st.none() | VERDICTS,
    pods=st.none() | pods_of_runs(),
    refused=st.none() | EVIDENCE,
    sessions=st.lists(st.builds(RunSession, id=st.sampled_from(("a", "b")), state=st.just("Stored")), max_size=2),
    url=st.sampled_from(("", "https://view/r")),
)


@given(st.lists(INPUTS, min_size=1, max_size=4))
def test_the_same_inputs_decide_the_same_status_and_stay_as_they_are(steps: list[RunInputs]) -> None:
    status = MLRunStatus()
    for number, inputs in enumerate(steps):
        now, before = NOW + timedelta(seconds=10 * number), deepcopy((status, inputs))
        following = next_status(status, inputs, now)
        assert (status, inputs) == before
        again = next_status(following.status, replace(inputs, signals=following.signals), now)
        assert again == following
        assert run_events(following.status, again.status) == ()
        status = following.status
