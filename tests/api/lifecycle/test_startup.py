from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.conditions import true_since
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.lifecycle.startup import (
    PodStartup,
    StartupStage,
    StartupTimeline,
    event_time,
    pods_startup,
    waiting_message,
)
from support.cluster import builders as a

if TYPE_CHECKING:
    import random

START = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def text(seconds: float) -> str:
    return format_time(at(seconds))


MOMENTS = st.none() | st.integers(-100, 10_000).map(at)
TIMELINES = st.builds(StartupTimeline, **{each.name: MOMENTS for each in fields(StartupTimeline)})


def starting_pod(name: str, *, scheduled: int | None = None, started: int | None = None) -> a.Object:
    """Return a pod as scheduler and kubelet leave it at these seconds."""
    pod = a.pod(name, phase="Running" if started is not None else "Pending")
    if scheduled is None:
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/12 nodes are available: 12 Insufficient google.com/tpu.",
                "lastTransitionTime": text(1),
            }
        ]
        del pod["status"]["containerStatuses"]
        return pod
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": text(scheduled)}]
    if started is not None:
        pod["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": text(started)}}
    return pod


def pulled_event(pod: a.Object, seconds: int) -> a.Object:
    return {
        "reason": "Pulled",
        "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
        "firstTimestamp": text(seconds),
        "metadata": {"creationTimestamp": text(seconds + 1)},
    }


def test_a_start_behind_a_queue_is_divided_by_stage() -> None:
    pods = [starting_pod("w-0", scheduled=130, started=200), starting_pod("w-1", scheduled=150, started=260)]
    views = [
        PodStartup.of(pod, pulled=event_time(pulled_event(pod, seconds)))
        for pod, seconds in zip(pods, (190, 250), strict=True)
    ]
    quota = {"type": "Admitted", "status": "True", "lastTransitionTime": text(100)}
    queued = StartupTimeline(created=START, admitted=true_since({"status": {"conditions": [quota]}}, "Admitted"))
    timeline = queued.merged(pods_startup(views, expected=2)).merged(StartupTimeline(first_step=at(400)))
    assert timeline.durations(at(9999)) == {
        StartupStage.QUEUEING: 100,
        StartupStage.SCHEDULING: 50,
        StartupStage.PULL: 100,
        StartupStage.STARTUP: 150,
    }
    assert timeline.stage() is None
    assert waiting_message(views, expected=2) == ""


def test_an_attempt_waits_for_its_last_pod_and_says_for_which_reason() -> None:
    pods = [PodStartup.of(starting_pod("w-0", scheduled=5, started=9)), PodStartup.of(starting_pod("w-1"))]
    timeline = StartupTimeline(created=START, admitted=START).merged(pods_startup(pods, expected=3))
    assert timeline.stage() is StartupStage.SCHEDULING
    assert timeline.durations(at(60))[StartupStage.SCHEDULING] == 60
    assert waiting_message(pods, expected=3) == (
        "1 of 3 pods started; pod 'w-1': Unschedulable: 0/12 nodes are available: 12 Insufficient google.com/tpu."
    )


def test_a_missing_image_is_the_reason_and_an_ordinary_wait_is_not() -> None:
    pod = starting_pod("w-0", scheduled=5)
    pod["status"]["containerStatuses"] = [{"name": "train", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    assert PodStartup.of(pod).waiting == ""
    refusal = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "train:2": {"x" * 500}'}
    pod["status"]["containerStatuses"][0]["state"]["waiting"] = refusal
    waiting = PodStartup.of(pod).waiting
    assert waiting.startswith('ImagePullBackOff: Back-off pulling image "train:2"')
    assert len(waiting) == 256


def test_a_restart_in_place_does_not_move_the_start_of_the_container() -> None:
    pod = starting_pod("w-0", scheduled=5, started=500)
    pod["status"]["containerStatuses"][0]["lastState"] = {"terminated": {"startedAt": text(20), "exitCode": 1}}
    view = PodStartup.of(pod, pulled=at(490))
    assert (view.started, view.pulled) == (at(20), at(20))


@pytest.mark.parametrize("status", [{}, {"conditions": None, "containerStatuses": None}, None])
def test_a_new_pod_has_reached_nothing(status: a.Object | None) -> None:
    pod = a.pod() | {"status": status}
    assert PodStartup.of(pod) == PodStartup(name="trainer-0", uid=pod["metadata"]["uid"])
    assert pods_startup([PodStartup.of(pod)]) == StartupTimeline()
    assert pods_startup([]) == StartupTimeline()


@given(TIMELINES, st.integers(0, 20_000).map(at))
def test_the_stages_add_up_to_the_time_since_creation(timeline: StartupTimeline, now: datetime) -> None:
    seconds = timeline.durations(now)
    if timeline.created is None:
        assert seconds == {}
        return
    assert set(seconds) == set(StartupStage)
    assert all(duration >= 0 for duration in seconds.values())
    elapsed = (timeline.first_step or now) - timeline.created
    assert sum(seconds.values()) == pytest.approx(max(0.0, elapsed.total_seconds()))
    if current := timeline.stage():
        order = list(StartupStage)
        assert all(seconds[stage] == 0 for stage in order[order.index(current) + 1 :])


@given(TIMELINES, TIMELINES, TIMELINES)
def test_known_milestones_stay(known: StartupTimeline, later: StartupTimeline, last: StartupTimeline) -> None:
    merged = known.merged(later)
    assert merged.merged(later) == merged == merged.merged(known)
    assert merged.merged(last) == known.merged(later.merged(last))
    assert StartupTimeline().merged(known) == known.merged(StartupTimeline()) == known


@given(
    st.lists(st.builds(PodStartup, name=st.just("w"), scheduled=MOMENTS, pulled=MOMENTS, started=MOMENTS), max_size=6),
    st.none() | st.integers(0, 6),
    st.randoms(use_true_random=False),
)
def test_a_milestone_needs_every_pod_in_any_order(
    pods: list[PodStartup], expected: int | None, order: random.Random
) -> None:
    timeline = pods_startup(pods, expected=expected)
    shuffled = order.sample(pods, len(pods))
    assert pods_startup(shuffled, expected=expected) == timeline
    assert waiting_message(shuffled, expected=expected) == waiting_message(pods, expected=expected)
    if timeline.started:
        assert all(pod.started and pod.started <= timeline.started for pod in pods)
        assert len(pods) >= (expected or 1)
