"""Shapes of operations come from the programs in a trace, within bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.wire import integer, message, text
from mldiagnostics_diagnosis.reading.planes import read
from mldiagnostics_diagnosis.reading.shapes import MAX_SHAPE, Program, shapes_of
from mldiagnostics_diagnosis.reading.summarizing import summarize
from mldiagnostics_diagnosis.summary import HostSummary
from support.traces import TracedEvent as Event
from support.traces import array, programs, xspace

F32, TUPLE = 11, 13
STEPS = 6


def shape_of(instructions: dict[str, dict[str, bytes]], planes: dict[str, dict[str, list[Event]]]) -> str:
    """Return the shape of the operation `fusion.1` in the summary of a trace."""
    trace = xspace(planes) + programs(instructions)
    document = summarize(read(memoryview(trace)), host="h", trace_bytes=len(trace))
    summary = HostSummary.model_validate_json(json.dumps(document))
    [shape] = [each.shape for each in summary.operations if each.name == "fusion.1"]
    assert {each.shape for each in summary.operations if each.name != "fusion.1"} == {""}
    return shape


def on_cpu(**values: str | int) -> dict[str, dict[str, list[Event]]]:
    """Return a program of one operation on a CPU, and its training loop."""
    loop = [Event("step", n * 10.0, 9.0, {"step_num": n}) for n in range(STEPS)]
    work = [Event("fusion.1", n * 10.0 + 2, 5.0, {"hlo_op": "fusion.1", **values}) for n in range(STEPS)]
    return {"/host:CPU": {"python": loop, "tf_worker": work}}


TWO = {"jit_train(5)": {"fusion.1": array(F32, 128, 256)}, "jit_other(6)": {"fusion.1": array(F32, 7)}}


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ({"hlo_module": "jit_train", "program_id": 5}, "f32[128,256]"),
        ({"hlo_module": "jit_other", "program_id": 6}, "f32[7]"),
        ({"hlo_module": "jit_train"}, "f32[128,256]"),
        ({}, ""),
    ],
)
def test_the_shape_is_that_in_the_program_which_ran(values: dict[str, str | int], shape: str) -> None:
    assert shape_of(TWO, on_cpu(**values)) == shape


def test_the_programs_that_a_tpu_ran_are_in_a_line_of_their_own() -> None:
    loop = [Event("step", n * 10.0, 9.0, {"step_num": n}) for n in range(STEPS)]
    device = {
        "XLA Ops": [Event("fusion.1", n * 10.0 + 2, 5.0) for n in range(STEPS)],
        "XLA Modules": [Event("jit_train(5)", n * 10.0 + 1, 7.0, {"run_id": n}) for n in range(STEPS)],
    }
    assert shape_of(TWO, {"/device:TPU:0": device, "/host:CPU": {"main": loop}}) == "f32[128,256]"


def test_a_program_that_was_compiled_twice_says_nothing_if_the_trace_has_no_numbers() -> None:
    twice = {"jit_train(5)": {"fusion.1": array(F32, 1)}, "jit_train(6)": {"fusion.1": array(F32, 2)}}
    assert shape_of(twice, on_cpu(hlo_module="jit_train")) == ""
    assert shape_of(twice, on_cpu(hlo_module="jit_train", program_id=6)) == "f32[2]"


def nested(depth: int) -> bytes:
    shape = array(F32, 1)
    for _ in range(depth):
        shape = integer(2, TUPLE) + message(4, shape)
    return shape


@pytest.mark.parametrize(
    ("encoded", "shape"),
    [
        (array(F32), "f32[]"),
        (integer(2, 16) + message(3, b"\x80\x01\x03"), "bf16[128,3]"),
        (integer(2, TUPLE) + message(4, array(F32, 2)) + message(4, array(4)), "(f32[2], s32[])"),
        (nested(3), "((...))"),
        (nested(2000), "((...))"),
        (array(99, 1), "type99[1]"),
        (array(F32, *[10**6] * 500), "f32[" + "1000000," * 9 + "1..."),
    ],
)
def test_a_shape_is_written_as_xla_does_it_in_few_characters(encoded: bytes, shape: str) -> None:
    assert shape_of({"jit_train(5)": {"fusion.1": encoded}}, on_cpu()) == shape
    assert len(shape) <= MAX_SHAPE


@given(st.binary(max_size=200))
def test_other_bytes_are_no_shape_and_no_error(content: bytes) -> None:
    hostile = {
        "metadata": content,
        "program": message(5, message(6, content)),
        "instruction": message(5, message(6, message(1, message(3, message(2, text(1, "f") + content))))),
        "shape": message(5, message(6, message(1, message(3, message(2, text(1, "f") + message(3, content)))))),
    }
    for name, statistics in hostile.items():
        shapes = shapes_of([Program(name, memoryview(statistics))], set(), {"f"})
        assert all(len(shape) <= MAX_SHAPE and shape.isascii() for shape in shapes.values())


def test_programs_beyond_the_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldiagnostics_diagnosis.reading.shapes.MAX_PROGRAM_BYTES", 40)
    assert shape_of(TWO, on_cpu(hlo_module="jit_train")) == ""
