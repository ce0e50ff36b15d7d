from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.targets import TargetFilter, candidates
from mldiagnostics_api.runs.hosts import hosts_of
from mldiagnostics_api.workloads.pods import PodView
from support.cluster import builders

PORTS = st.lists(st.integers(1, 65535), min_size=1, max_size=4, unique=True)


def pod(index: int, ports: list[int]) -> PodView:
    published = {"diagon.gke.io/profiler-ports": ",".join(map(str, ports))}
    return PodView.of(builders.pod(f"trainer-{index}", uid=f"u{index}", annotations=published))


@given(st.lists(PORTS, max_size=5))
def test_property_ranks_and_ports_are_those_of_a_capture(published: list[list[int]]) -> None:
    pods = [pod(*each) for each in enumerate(published)]
    hosts = hosts_of({"metadata": {"name": "trainer"}}, reversed(pods), attempt=1)
    targets = candidates(pods, workload=lambda _: "trainer", policy=Policy(), target_filter=TargetFilter(), port=None)
    assert [(each.rank, each.pod, each.port) for each in hosts] == [
        (each.rank, each.pod.name, each.port) for each in targets
    ]


def test_a_host_without_a_valid_port_has_none() -> None:
    plain = PodView.of(builders.pod("trainer-0", uid="u0"))
    named = PodView.of(builders.pod("trainer-1", uid="u1", ports={"mldiag-prof": 9001}))
    broken = PodView.of(builders.pod("trainer-2", uid="u2", annotations={"diagon.gke.io/profiler-ports": "many"}))
    hosts = hosts_of({"metadata": {"name": "trainer"}}, [plain, named, broken], attempt=None)
    assert [(each.rank, each.pod, each.port) for each in hosts] == [
        (0, "trainer-0", None),
        (1, "trainer-1", 9001),
        (2, "trainer-2", None),
    ]
