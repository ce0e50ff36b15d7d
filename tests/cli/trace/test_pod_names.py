from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.trace.pod_names import PodPosition, position_of

names = st.from_regex(r"[a-z]([a-z0-9-]*[a-z0-9])?", fullmatch=True)


@given(
    names, st.integers(0, 10**6 - 1), st.integers(0, 9999), st.from_regex(r"-[a-z0-9]{5}", fullmatch=True) | st.just("")
)
def test_the_last_two_numbers_are_slice_and_worker(name: str, slice_: int, worker: int, end: str) -> None:
    assert position_of(f"{name}-{slice_}-{worker}{end}") == PodPosition(slice_, worker)


@pytest.mark.parametrize("pod", ["", "trainer", "trainer-0", "trainer-0-x7k2p", "rank 0", "node-1.example", "1-2-3-4-"])
def test_other_names_have_no_position(pod: str) -> None:
    assert position_of(pod) is None
