"""Readers of a session: as many at a time as its resources allow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_diagnosis.limits import Limits, Resources

MIB = 2**20


def test_a_machine_reads_one_trace_on_each_processor() -> None:
    assert Resources(cpus=4).readers([2 * MIB] * 16) == (4, Limits())
    assert Resources.here({}).memory_bytes is None


def test_a_container_passes_its_limits_on() -> None:
    here = Resources.here({"MLDIAG_CPU_LIMIT": "2", "MLDIAG_MEMORY_LIMIT": str(2048 * MIB)})
    assert here == Resources(2, 2048 * MIB)
    assert here.readers([2 * MIB] * 16) == (2, Limits(memory_bytes=520 * MIB))
    assert here.readers([2 * MIB, 250 * MIB])[0] == 1


@given(st.lists(st.integers(0, 2**31), max_size=20), st.integers(1, 128), st.integers(256 * MIB, 2**36))
def test_all_readers_together_fit_into_the_container(traces: list[int], cpus: int, memory: int) -> None:
    parallel, limits = Resources(cpus, memory).readers(traces)
    assert 1 <= parallel <= cpus
    assert limits.memory_bytes
    assert parallel * limits.memory_bytes < memory
