from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.reports.reported_profilers import ReportedProfilers, profilers_by_pod
from mldiagnostics_api.reports.reported_run import ReportedHost
from mldiagnostics_api.workloads.pods import MAX_PROFILER_PORTS


def host(rank: int | None, *ports: int, pod_uid: str = "u", **changes: Any) -> ReportedHost:
    facts: dict[str, Any] = {"slice": None, "name": "h", "pod": "w-0", "node": "", "attempt": 0, "received": 0.0}
    facts |= {"incarnation": f"{rank or 0:08x}", "server": "jax"}
    return ReportedHost(rank=rank, pod_uid=pod_uid, ports=ports, **(facts | changes))


def test_the_processes_of_a_pod_have_their_ports_in_the_order_of_ranks() -> None:
    hosts = [host(1, 10001), host(0, 10000), host(2, 9999, pod_uid="v"), host(3, 9999, pod_uid="")]
    assert profilers_by_pod(hosts) == {
        "u": ReportedProfilers((10000, 10001), frozenset()),
        "v": ReportedProfilers((9999,), frozenset()),
    }


def test_a_server_is_safe_with_tensorflow_or_if_it_is_another_make() -> None:
    hosts = [host(0, 1, tensorflow=True), host(1, 2, server="mldiagnostics"), host(2, 3), host(3, 4, server="")]
    assert profilers_by_pod(hosts)["u"].safe == {1, 2}
    shared = [host(0, 1, tensorflow=True), host(1, 1)]
    assert profilers_by_pod(shared)["u"].safe == frozenset()


def test_processes_that_ended_and_those_without_a_server_have_no_ports() -> None:
    assert profilers_by_pod([host(0, 9999, phase="Failed"), host(1)]) == {}


@given(st.lists(st.builds(host, st.none() | st.integers(0, 9), st.integers(1, 200), st.integers(1, 200)), max_size=90))
def test_ports_are_distinct_and_bounded_in_any_order(hosts: list[ReportedHost]) -> None:
    for profilers in profilers_by_pod(hosts).values():
        assert len(set(profilers.ports)) == len(profilers.ports) <= MAX_PROFILER_PORTS
        assert profilers.safe <= set(profilers.ports)
