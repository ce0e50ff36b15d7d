from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.targets import MAX_TARGETS, TargetCandidate, TargetFilter, TooManyTargets, candidates
from mldiagnostics_api.names import SkipReason
from mldiagnostics_api.ranges import Ranges
from mldiagnostics_api.workloads.pods import PodView
from support.cluster import builders as a

PORTS = "diagon.gke.io/profiler-ports"


def candidates_of(
    pods: list[a.Object], *, policy: Policy | None = None, port: int | None = None, **target_filter: Any
) -> tuple[TargetCandidate, ...]:
    return candidates_in([PodView.of(pod) for pod in pods], policy=policy, port=port, **target_filter)


def candidates_in(
    pods: list[PodView], *, policy: Policy | None = None, port: int | None = None, **target_filter: Any
) -> tuple[TargetCandidate, ...]:
    return candidates(
        pods,
        workload=lambda _: "",
        policy=policy or Policy(),
        target_filter=TargetFilter(**target_filter),
        port=port,
    )


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (a.pod(phase="Pending", ip=""), SkipReason.NOT_READY),
        (a.pod(phase="Unknown"), SkipReason.NOT_READY),
        (a.pod(ip=""), SkipReason.NO_IP),
        (a.pod(phase="Succeeded"), SkipReason.FINISHED),
        (a.pod(phase="Failed"), SkipReason.FINISHED),
        (a.pod(terminating=True), SkipReason.TERMINATING),
        (a.pod(host_network=True), SkipReason.HOST_NETWORK_NOT_ALLOWED),
        (a.pod(ip="127.0.0.1"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(ip="169.254.169.254"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(ip="::1"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(ip="::ffff:127.0.0.1"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(ip="fe80::1"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(ip="0.0.0.0"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(ip="224.0.0.1"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(ip="metadata.google.internal"), SkipReason.ADDRESS_NOT_ALLOWED),
        (a.pod(annotations={PORTS: "22"}), SkipReason.PORT_NOT_ALLOWED),
        (a.pod(ports={"mldiag-prof": 8080}), SkipReason.PORT_NOT_ALLOWED),
        (a.pod(annotations={PORTS: "https"}), SkipReason.PORT_INVALID),
        (a.pod(annotations={PORTS: "9999,09999"}), SkipReason.PORT_INVALID),
        (a.pod(annotations={PORTS: ""}), SkipReason.PORT_INVALID),
        (a.pod(annotations={PORTS: "9999,99999"}), SkipReason.PORT_INVALID),
        (a.pod(ports={"mldiag-prof": 9999}, running=False), SkipReason.NOT_READY),
    ],
)
def test_each_fault_has_its_own_skip_reason(pod: a.Object, reason: SkipReason) -> None:
    [candidate] = candidates_of([pod])
    assert candidate.skip is reason
    assert candidate.message


OFF = {"XLA_FLAGS": "--xla_gpu_enable_command_buffer=FUSION --xla_gpu_enable_command_buffer="}


@pytest.mark.parametrize(
    ("pod", "skip"),
    [
        (a.pod(gpus=8), SkipReason.COMMAND_BUFFERS_ACTIVE),
        (a.pod(gpus=8, env={"XLA_FLAGS": "--xla_dump_to=/tmp"}), SkipReason.COMMAND_BUFFERS_ACTIVE),
        (a.pod(gpus=8, env={"XLA_FLAGS": "--xla_gpu_enable_command_buffer=FUSION"}), SkipReason.COMMAND_BUFFERS_ACTIVE),
        (a.pod(gpus=8, env=OFF), None),
        (a.pod(), None),
        (a.pod(gpus=8, phase="Failed"), SkipReason.FINISHED),
    ],
)
def test_gpus_with_command_buffers_are_spared_on_request(pod: a.Object, skip: SkipReason | None) -> None:
    [spared] = candidates(
        [PodView.of(pod)],
        workload=lambda _: "",
        policy=Policy(),
        target_filter=TargetFilter(),
        port=None,
        spares_command_buffers=True,
    )
    assert spared.skip is skip
    [manual] = candidates_of([pod])
    assert manual.skip is (None if skip is SkipReason.COMMAND_BUFFERS_ACTIVE else skip)


@pytest.mark.parametrize(
    "pod",
    [
        a.pod(),
        a.pod(ip="fd00::7"),
        a.pod(running=False),  # another container runs, and no port names the container of the profiler
        a.pod(annotations={PORTS: " 9999 , 10000 "}),
    ],
)
def test_running_pods_are_targets(pod: a.Object) -> None:
    assert all(candidate.skip is None for candidate in candidates_of([pod]))


def test_host_network_pods_are_targets_if_the_policy_allows_it() -> None:
    [candidate] = candidates_of([a.pod(host_network=True)], policy=Policy(host_network=True))
    assert candidate.skip is None


@pytest.mark.parametrize(
    ("pod", "port", "ports"),
    [
        (a.pod(), None, [9999]),
        (a.pod(), 10001, [10001]),
        (a.pod(ports={"mldiag-prof": 9012}), 10001, [9012]),
        (a.pod(ports={"mldiag-prof-0": 9999, "http": 80, "mldiag-prof-1": 10000}), None, [9999, 10000]),
        (a.pod(annotations={PORTS: "10000,9999"}, ports={"mldiag-prof": 9012}), 10001, [10000, 9999]),
    ],
)
def test_published_ports_win_over_the_port_of_the_spec(pod: a.Object, port: int | None, ports: list[int]) -> None:
    assert [candidate.port for candidate in candidates_of([pod], port=port)] == ports


@pytest.mark.parametrize("text", ["9" * 250_000, ",".join(map(str, range(1, 66)))])
def test_an_annotation_with_too_many_ports_is_the_problem_of_its_pod_alone(text: str) -> None:
    pods = a.job(pods=2).pods
    pods[0]["metadata"]["annotations"][PORTS] = text
    faulty, good = candidates_of(pods)
    assert (faulty.skip, good.skip) == (SkipReason.PORT_INVALID, None)
    assert len(faulty.message) < 200


def test_a_capture_has_a_bounded_number_of_targets() -> None:
    ports = ",".join(map(str, range(9000, 9064)))
    pods = [a.pod(f"p-{number}", annotations={PORTS: ports}) for number in range(MAX_TARGETS // 64 + 1)]
    with pytest.raises(TooManyTargets):
        candidates_of(pods)


def test_ranks_count_over_all_pods_also_those_not_ready() -> None:
    pods = a.job(pods=3, annotations={PORTS: "9999,10000"}).pods
    pods[1]["status"]["phase"] = "Pending"
    seen = candidates_of(pods)
    assert [(c.rank, c.local_rank) for c in seen] == [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 1)]
    assert [c.skip for c in seen[2:4]] == [SkipReason.NOT_READY, SkipReason.NOT_READY]


def test_a_container_filters_ports_and_readiness() -> None:
    pod = a.pod(ports={"mldiag-prof": 9999})
    pod["spec"]["containers"].append({"name": "side", "ports": [{"name": "mldiag-prof", "containerPort": 10000}]})
    pod["status"]["containerStatuses"].append({"name": "side", "state": {"waiting": {}}})
    assert [(c.port, c.skip) for c in candidates_of([pod])] == [(9999, None), (10000, SkipReason.NOT_READY)]
    assert [(c.port, c.skip) for c in candidates_of([pod], container="train")] == [(9999, None)]
    assert [(c.port, c.skip) for c in candidates_of([pod], container="side")] == [(10000, SkipReason.NOT_READY)]
    assert [c.skip for c in candidates_of([pod], container="nobody")] == [SkipReason.CONTAINER_NOT_FOUND]


def test_limit_takes_ready_targets_first_and_then_the_lowest_ranks() -> None:
    pods = a.job(pods=4).pods
    pods[0]["status"]["phase"] = "Pending"
    assert [c.rank for c in candidates_of(pods, limit=2)] == [1, 2]
    assert [c.rank for c in candidates_of(pods, limit=4)] == [0, 1, 2, 3]


def test_the_replicated_job_filters() -> None:
    pods = a.jobset(jobs={"driver": (1, 1), "workers": (2, 2)}).pods
    assert [c.rank for c in candidates_of(pods, replicated_job="workers")] == [1, 2, 3, 4]
    assert [c.rank for c in candidates_of(pods, replicated_job="workers", slices=Ranges.parse("1"))] == [3, 4]


WORLD = a.jobset(jobs={"driver": (1, 1), "workers": (3, 4)}).views()
target_filters = st.fixed_dictionaries(
    {},
    optional={
        "ranks": st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)).map(sorted), min_size=1).map(
            lambda spans: Ranges.of((low, high) for low, high in spans)
        ),
        "slices": st.sampled_from([Ranges.parse("0"), Ranges.parse("1-2"), Ranges.parse("0,2")]),
        "nodes": st.frozensets(st.integers(0, 12).map(lambda n: f"node-{n}"), min_size=1),
        "replicated_job": st.sampled_from(["driver", "workers", "other"]),
    },
)
phases = st.lists(st.sampled_from(["Running", "Pending", "Failed"]), min_size=13, max_size=13)


def world_with(states: list[str]) -> list[PodView]:
    return [replace(pod, phase=state) for pod, state in zip(WORLD, states, strict=True)]


@given(st.permutations(range(13)), phases, target_filters)
def test_the_order_of_the_input_does_not_matter(
    permutation: list[int], states: list[str], target_filter: dict[str, Any]
) -> None:
    pods = world_with(states)
    assert candidates_in([pods[index] for index in permutation], **target_filter) == candidates_in(
        pods, **target_filter
    )


@given(phases, target_filters, target_filters)
def test_property_two_filters_intersect(states: list[str], one: dict[str, Any], other: dict[str, Any]) -> None:
    pods = world_with(states)
    both = {c.rank for c in candidates_in(pods, **one)} & {c.rank for c in candidates_in(pods, **other)}
    combined = [c for c in candidates_in(pods) if TargetFilter(**one).matches(c) and TargetFilter(**other).matches(c)]
    assert {c.rank for c in combined} == both


@given(phases, target_filters, st.integers(1, 15))
def test_property_a_filter_never_changes_ranks(states: list[str], target_filter: dict[str, Any], limit: int) -> None:
    pods = world_with(states)
    everything = candidates_in(pods)
    assert [c.rank for c in everything] == list(range(13))
    filtered = candidates_in(pods, **target_filter)
    assert all(candidate in everything for candidate in filtered)
    limited = candidates_in(pods, limit=limit, **target_filter)
    assert all(candidate in filtered for candidate in limited)
    assert len(limited) == min(limit, len(filtered))
    ready = sum(c.skip is None for c in filtered)
    assert sum(c.skip is None for c in limited) == min(limit, ready)


@given(phases)
def test_ranks_count_within_each_workload(states: list[str]) -> None:
    views = world_with(states)
    twice = [*views, *(replace(view, uid=f"{view.uid}-b", name=f"b-{view.name}") for view in views)]
    seen = candidates(
        twice,
        workload=lambda pod: pod.uid[36:],
        policy=Policy(),
        target_filter=TargetFilter(),
        port=None,
    )
    assert [c.rank for c in seen] == [*range(13), *range(13)]
