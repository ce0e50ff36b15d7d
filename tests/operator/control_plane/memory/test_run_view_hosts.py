"""The hosts of a view: the newest process of each rank, in linear time."""

from __future__ import annotations

import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.reports.reported_run import ReportedHost
from mldiagnostics_operator.control_plane.limits import SUPERSEDED_S
from mldiagnostics_operator.control_plane.memory.process_memory import ProcessMemory
from mldiagnostics_operator.control_plane.memory.run_view import _hosts

HOSTS = st.builds(
    ReportedHost,
    rank=st.none() | st.integers(0, 2),
    slice=st.none(),
    name=st.sampled_from("ab"),
    pod=st.just(""),
    pod_uid=st.sampled_from("uv"),
    node=st.just(""),
    attempt=st.integers(0, 2),
    incarnation=st.text("0123", min_size=3, max_size=3),
    phase=st.sampled_from(["Active", "Active", "Completed"]),
    received=st.integers(0, 5).map(lambda number: number * 40.0),
    interval_s=st.sampled_from([10, 30]),
)


def process_of(host: ReportedHost) -> ProcessMemory:
    process = ProcessMemory(0.0)
    process.host = host
    return process


def is_silent(older: ReportedHost, newer: ReportedHost) -> bool:
    return newer.received - older.received > max(SUPERSEDED_S, older.silent_s) or older.phase != "Active"


def is_replaced(older: ReportedHost, newer: ReportedHost) -> bool:
    same_container = (older.pod_uid, older.name) == (newer.pod_uid, newer.name)
    if older.rank != newer.rank:
        return False
    if older.rank is None:
        return same_container and is_silent(older, newer)
    return older.attempt < newer.attempt or same_container or is_silent(older, newer)


@given(st.lists(HOSTS, max_size=12))
def test_a_host_is_shown_unless_a_newer_one_replaces_it(hosts: list[ReportedHost]) -> None:
    ordered = sorted((process_of(host) for host in hosts), key=lambda each: each.order)
    hosts = [each.host for each in ordered]
    kept = [
        host for place, host in enumerate(hosts) if not any(is_replaced(host, newer) for newer in hosts[place + 1 :])
    ]
    expected = [host for host in kept if host.rank is None]
    expected += sorted((host for host in kept if host.rank is not None), key=lambda host: host.rank or 0)
    assert list(_hosts(ordered)) == expected


def test_many_hosts_without_a_rank_take_linear_time() -> None:
    host = ReportedHost(
        rank=None, slice=None, name="", pod="", pod_uid="", node="", attempt=0, incarnation="", received=1.0
    )
    for names in ([f"h{number}" for number in range(8192)], ["h"] * 8192):
        processes = [process_of(replace(host, name=name)) for name in names]
        start_s = time.process_time()
        assert len(_hosts(processes)) == len(names)
        assert time.process_time() - start_s < 1.0
