"""Traces of CPU, TPU and GPU become phases of steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mldiagnostics.capture.wire import WireError
from mldiagnostics_diagnosis.reading.planes import read
from mldiagnostics_diagnosis.reading.summarizing import summarize
from mldiagnostics_diagnosis.summary import HostSummary
from support.traces import TracedEvent as Event
from support.traces import xspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEP_MS, STEPS = 40.0, 12


def summary_of(trace: bytes) -> HostSummary:
    document = summarize(read(memoryview(trace)), host="h", trace_bytes=len(trace))
    return HostSummary.model_validate_json(json.dumps(document))


def host_line(inside: Any = None, launch_ms: float = 10.6) -> list[Event]:
    """Return a training loop: annotation of the step, 10 ms in a fetch with a transfer, and a launch."""
    events = []
    for number in range(STEPS):
        t = number * STEP_MS
        events += [
            Event("any words", t, 39.5, {"step_num": 7 + number}),
            Event("the program's name", t + 0.5, 10.0),
            Event("DevicePutWithSharding", t + 9.5, 0.5),
            *(inside(t) if inside else []),
            Event("PjitFunction(train)", t + launch_ms, 0.4),
        ]
    return events


def operations(**stats: Any) -> Iterator[Event]:
    for number in range(STEPS):
        t, run = number * STEP_MS, {"run_id": 1000 + number, **stats}
        yield Event("fusion.1", t + 11.0, 9.0, {"hlo_op": "fusion.1", **run})
        yield Event("all-reduce.2", t + 20.0, 18.0, {"hlo_op": "all-reduce.2", "hlo_module": "jit_train", **run})


def phases(summary: HostSummary) -> dict[str, float]:
    assert summary.steps
    return {phase: round(series[3] * 1000, 1) for phase, series in summary.steps.phases.items() if series[3] >= 0.0005}


def test_a_trace_of_a_cpu_has_steps_from_collective_to_collective() -> None:
    summary = summary_of(xspace({"/host:CPU": {"python": host_line(), "tf_worker": [*operations()]}}))
    assert summary.steps
    assert (summary.platform, summary.steps.source, summary.steps.numbers) == ("cpu", "annotations", (*range(8, 19),))
    assert phases(summary) == {"input": 10.0, "host": 3.0, "compute": 9.0, "collective": 18.0}
    assert summary.steps.arrivals[3] == pytest.approx(0.022)
    assert summary.steps.waits[3] == pytest.approx(0.018)
    assert summary.coverage == 1.0


@pytest.mark.parametrize(
    ("plane", "line", "platform"),
    [("/device:TPU:0", "XLA Ops", "tpu"), ("/device:GPU:0", "Stream #1(compute)", "gpu")],
)
def test_a_trace_of_an_accelerator_has_the_same_phases(plane: str, line: str, platform: str) -> None:
    trace = xspace({plane: {line: [*operations()], "XLA Modules": []}, "/host:CPU": {"main": host_line()}})
    summary = summary_of(trace)
    assert summary.platform == platform
    assert phases(summary) == {"input": 10.0, "host": 3.0, "compute": 9.0, "collective": 18.0}


AHEAD = 2
"""Steps that a host launches before its device executes the first of them."""


def launching_ahead(event: Callable[[int], Event]) -> list[Event]:
    """Return a training loop whose steps take little time, as the device is busy with earlier ones."""
    marks = [Event("s", n * STEP_MS, 39.5, {"step_num": 7 + n}) for n in range(STEPS)]
    return [each for n in range(STEPS) for each in (marks[n], event(n))]


def executed_later(**stats: Any) -> list[Event]:
    """Return a reduction per step; the device executes it `AHEAD` steps after its launch."""
    later = AHEAD * STEP_MS + 20
    return [
        Event("all-reduce.2", n * STEP_MS + later, 18.0, {name: value + n for name, value in stats.items()})
        for n in range(STEPS)
    ]


def test_a_gpu_executes_the_steps_that_its_driver_launched_before() -> None:
    launches = launching_ahead(
        lambda n: Event("cuLaunchKernelEx", n * STEP_MS + 1, 0.1, {"correlation_id": 50 + n, "hlo_op": "all-reduce.2"})
    )
    planes = {"/host:CPU": {"python": launches}, "/device:GPU:0": {"Stream #7": executed_later(correlation_id=50)}}
    summary = summary_of(xspace(planes))
    assert summary.steps
    assert (summary.platform, summary.steps.numbers) == ("gpu", (*range(8, 7 + STEPS),))


def test_the_executions_of_a_tpu_have_their_numbers_and_programs_in_a_line_of_their_own() -> None:
    host = {
        "python": launching_ahead(lambda n: Event("PjitFunction(train)", n * STEP_MS + 1, 0.1)),
        "main/7": [Event("DoEnqueueProgram", n * STEP_MS + 2, 0.1, {"run_id": 300 + n}) for n in range(STEPS)],
        "futex": [
            Event("CompleteCallbacks", (n + AHEAD) * STEP_MS + 38, 0.1, {"run_id": 300 + n}) for n in range(STEPS)
        ],
    }
    modules = [
        Event("jit_train(17342868964687645945)", (n + AHEAD) * STEP_MS, 39.0, {"run_id": 300 + n}) for n in range(STEPS)
    ]
    device = {"XLA Ops": executed_later(), "XLA Modules": modules}
    summary = summary_of(xspace({"/device:TPU:0": device, "/host:CPU": host}))
    assert summary.steps
    assert summary.steps.numbers == (*range(8, 7 + STEPS),)
    of_cpu = summary_of(xspace({"/host:CPU": {"python": host_line(), "tf_worker": [*operations()]}}))
    assert summary.program == of_cpu.program != ""


def test_of_devices_without_collectives_the_one_with_most_work_counts() -> None:
    launches = [Event("PjitFunction(f)", n * STEP_MS, 1.0) for n in range(STEPS)]
    copies, kernels = (
        [Event(name, n * STEP_MS + 2, ms, {"correlation_id": n}) for n in range(STEPS)]
        for name, ms in (("CopyDeviceToDevice", 1.0), ("fusion.1", 20.0))
    )
    planes = {"/device:GPU:0": {"Stream #8": copies}, "/device:GPU:1": {"Stream #1": kernels}}
    assert phases(summary_of(xspace({**planes, "/host:CPU": {"python": launches}})))["compute"] == 20.0


def test_the_launch_of_a_program_inside_of_its_own_launch_is_no_step() -> None:
    launches = [
        event
        for n in range(STEPS)
        for event in (
            Event("PjitFunction(train)", n * STEP_MS, 30.0),
            Event("PjitFunction(train)", n * STEP_MS + 0.1, 29.0),
        )
    ]
    summary = summary_of(xspace({"/host:CPU": {"python": launches}}))
    assert summary.steps
    assert (summary.steps.total, set(summary.steps.seconds)) == (STEPS - 1, {STEP_MS / 1000})


def test_the_calls_of_a_driver_do_not_make_its_thread_the_training_loop() -> None:
    loop = [Event("PjitFunction(train)", n * STEP_MS, 1.0) for n in range(STEPS)]
    calls = [Event("cuLaunchKernel", n * STEP_MS / 9, 0.1, {"correlation_id": n}) for n in range(STEPS * 9)]
    kernels = [Event("fusion.1", n * STEP_MS + 2, 9.0) for n in range(STEPS)]
    planes = {"/host:CPU": {"Host Threads/7": calls, "python": loop}, "/device:GPU:0": {"Stream #1": kernels}}
    summary = summary_of(xspace(planes))
    assert summary.steps
    assert summary.steps.total == STEPS - 1


READ = Event("np.asarray(jax.Array)", 11.0, 0.1)


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ([Event("backend_compile_and_load", 10.5, 0.0)], "compilation"),
        ([Event("gc: generation 2", 10.5, 0.0)], "collection"),
        ([Event("zzz", 10.5, 0.0), READ, READ], "checkpoint"),
        ([Event("zzz", 10.5, 0.0)], "host"),
    ],
)  # fmt: skip
def test_events_inside_decide_the_phase_of_the_host(events: list[Event], phase: str) -> None:
    def slow(t: float) -> list[Event]:
        return [Event(each.name, t + each.start_ms, each.duration_ms or 5.0) for each in events]

    lines = {"python": host_line(slow, 15.6), "tf_worker": [_later(each, 5.0) for each in operations()]}
    shown = phases(summary_of(xspace({"/host:CPU": lines})))
    assert shown[phase] == pytest.approx(7.0 if phase == "host" else 5.0, abs=0.2)


def collector(start_ms: float) -> Event:
    return Event("PythonRefManager::CollectGarbage", start_ms, 0.002)


def test_a_collection_of_garbage_lasts_between_the_two_marks_of_jax() -> None:
    def collect(t: float) -> list[Event]:
        return [collector(t + 10.6), collector(t + 15.5)]

    lines = {"python": host_line(collect, 15.6), "tf_worker": [_later(each, 5.0) for each in operations()]}
    shown = phases(summary_of(xspace({"/host:CPU": lines})))
    assert shown["collection"] == pytest.approx(4.9, abs=0.1)


def test_the_end_of_a_collection_that_began_before_the_trace_starts_none() -> None:
    line = host_line(lambda t: [collector(t + 10.6), collector(t + 15.5)], 15.6)
    lines = {"python": [collector(0.0), *line], "tf_worker": [_later(each, 5.0) for each in operations()]}
    shown = phases(summary_of(xspace({"/host:CPU": lines})))
    assert shown["collection"] == pytest.approx(4.9, abs=0.1)


@pytest.mark.parametrize(("reads", "phase"), [(1, "host"), (3, "checkpoint")])
def test_time_after_several_arrays_were_read_is_a_checkpoint(reads: int, phase: str) -> None:
    def save(t: float) -> list[Event]:
        copies = [Event("ArrayImpl.copy_to_host_async", t + 10.55 + n * 0.01, 0.005) for n in range(reads)]
        return [*copies, *(Event("np.asarray(jax.Array)", t + 10.6 + n * 0.1, 0.05) for n in range(reads))]

    lines = {"python": host_line(save, 15.6), "tf_worker": [_later(each, 5.0) for each in operations()]}
    shown = phases(summary_of(xspace({"/host:CPU": lines})))
    assert shown[phase] >= 4.5
    assert ("checkpoint" in shown) == (phase == "checkpoint")


def _later(event: Event, ms: float) -> Event:
    return Event(event.name, event.start_ms + ms, min(event.duration_ms, 14.0), event.values)


def test_a_callback_of_a_program_is_no_computation() -> None:
    callbacks = [Event("pure_callback.1", n * STEP_MS + 1, 8.0, {"hlo_op": "pure_callback.1"}) for n in range(STEPS)]
    summary = summary_of(xspace({"/host:CPU": {"python": host_line(), "tf_a": [*operations()], "tf_b": callbacks}}))
    assert phases(summary)["callback"] == 8.0
    assert next(each.phase for each in summary.operations if each.name == "pure_callback.1") == "callback"


def test_a_trace_without_annotations_has_steps_from_repeated_programs() -> None:
    launches = [Event("PjitFunction(train)", n * STEP_MS, 30.0) for n in range(STEPS)]
    summary = summary_of(xspace({"/host:CPU": {"python": launches}}))
    assert summary.steps
    assert (summary.steps.source, summary.steps.total) == ("modules", STEPS - 1)
    numbered = summary_of(xspace({"/host:CPU": {"tf_worker": [*operations()]}}))
    assert numbered.steps
    assert (numbered.steps.source, numbered.steps.numbers) == ("modules", (*range(1001, 1000 + STEPS),))


def test_steps_of_pytorch_come_from_its_optimizer() -> None:
    line = [
        event
        for n in range(STEPS)
        for event in (
            Event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", n * 20.0, 6.0),
            Event("aten::mm", n * 20.0 + 6, 10.0),
            Event("gloo:all_reduce", n * 20.0 + 16, 3.0),
            Event("Optimizer.step#SGD.step", n * 20.0 + 19, 1.0),
        )
    ]
    summary = summary_of(xspace({"/host:CPU": {"MainThread": line}}))
    assert summary.steps
    assert summary.steps.source == "modules"
    assert phases(summary) == {"input": 6.0, "compute": 10.0, "collective": 3.0, "host": 1.0}


def test_a_trace_without_repetition_has_no_steps() -> None:
    summary = summary_of(xspace({"/host:CPU": {"python": [Event("load", 0.0, 100.0)]}}))
    assert summary.steps is None
    assert summary.duration_s == pytest.approx(0.1)


def test_memory_and_rates_come_from_the_allocator_and_the_device() -> None:
    work = [Event("dot.1", n * 10.0, 10.0, {"flops": 8 * 10**9, "bytes_accessed": 10**6}) for n in range(STEPS)]
    allocation = Event(
        "MemoryAllocation", 1.0, 0.1, {"bytes_allocated": 60, "bytes_reserved": 10, "bytes_available": 30}
    )
    planes = {"/device:TPU:0": {"XLA Ops": work}, "/host:CPU": {"main": [allocation]}}
    summary = summary_of(xspace(planes, {"peak_teraflops_per_second": 1, "peak_hbm_bw_gigabytes_per_second": 1}))
    assert summary.memory
    assert (summary.memory.peak_bytes, summary.memory.limit_bytes) == (70, 100)
    assert summary.counters
    assert summary.counters.compute == pytest.approx(0.8)


def allocation(name: str, allocated: int, available: int, peak: int = 0) -> Event:
    values = {"bytes_allocated": allocated, "bytes_reserved": 0, "bytes_available": available}
    return Event("MemoryAllocation", 1.0, 0.1, {"allocator_name": name, "peak_bytes_in_use": peak, **values})


def test_the_fullest_allocator_of_the_devices_counts_and_none_of_the_host() -> None:
    work = [Event("dot.1", n * 10.0, 10.0) for n in range(STEPS)]
    events = [
        allocation("GPU_0_bfc", 10, 30),
        allocation("GPU_1_bfc", 36, 4, peak=39),
        allocation("xla_gpu_host_bfc", 0, 640),
    ]
    planes = {"/device:GPU:1": {"Stream #1": work}, "/host:CPU": {"main": events}}
    memory = summary_of(xspace(planes)).memory
    assert memory
    assert (memory.peak_bytes, memory.limit_bytes, memory.share) == (39, 40, 39 / 40)


def test_an_allocator_that_is_full_keeps_its_limit() -> None:
    work = [Event("dot.1", n * 10.0, 10.0) for n in range(STEPS)]
    events = [allocation("GPU_0_bfc", 36, 4), allocation("GPU_0_bfc", 40, 0)]
    memory = summary_of(xspace({"/device:GPU:0": {"Stream #1": work}, "/host:CPU": {"main": events}})).memory
    assert memory
    assert (memory.peak_bytes, memory.limit_bytes) == (40, 40)


def test_of_more_steps_than_fit_runs_are_kept() -> None:
    steps = [Event("s", n * 10.0, 9.0, {"step_num": n}) for n in range(1000)]
    summary = summary_of(xspace({"/host:CPU": {"python": steps}}))
    assert summary.steps
    assert (summary.steps.total, summary.steps.numbers) == (999, tuple(n for n in range(999) if n // 8 % 16 == 0))


TRACE = xspace({"/host:CPU": {"python": host_line(), "tf_worker": [*operations()]}})


@given(st.integers(0, len(TRACE) - 1))
def test_a_trace_that_is_cut_is_rejected_or_has_less(size: int) -> None:
    try:
        summarize(read(memoryview(TRACE[:size])), host="h", trace_bytes=size)
    except WireError:
        return
    assert size == 0


@example(TRACE.index(b"*\tjit_train"), b"\x15")  # a double of four bytes
@given(st.integers(0, len(TRACE) - 1), st.binary(min_size=1, max_size=8))
def test_other_bytes_never_break_the_reader(place: int, other: bytes) -> None:
    trace = TRACE[:place] + other + TRACE[place + len(other) :]
    try:
        summary_of(trace)
    except WireError:
        return
