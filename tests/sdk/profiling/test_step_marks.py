"""Marks of steps in traces of a real JAX program."""

from __future__ import annotations

import pytest
from support.programs.jax_programs import run_program

pytestmark = pytest.mark.peers

READS = """
from jax.profiler import ProfileData, StepTraceAnnotation
def steps():
    data = ProfileData.from_file(str(next(__import__("pathlib").Path(sys.argv[1], "t").rglob("*.xplane.pb"))))
    events = [event for plane in data.planes for line in plane.lines for event in line.events]
    numbered = [dict(event.stats) for event in events if event.name in {"train", "own"}]
    return sorted(stats["step_num"] for stats in numbered if "step_num" in stats)
def traced(*rounds):
    with jax.profiler.trace(sys.argv[1] + "/t"):
        for each in rounds:
            each()
"""


@pytest.mark.parametrize(
    ("rounds", "marked"),
    [
        pytest.param("[lambda: (run.step(), step())] * 4 + [run.close]", [0, 1, 2, 3], id="of the run"),
        pytest.param("[own] * 4", [0, 1, 2, 3], id="the program's own stay alone"),
    ],
)
def test_steps_of_a_run_are_marked_once(tmp_path: object, rounds: str, marked: list[int]) -> None:
    program = f"""
{READS}
run = begin()
before = StepTraceAnnotation.__init__
step()
count = iter(range(9))
def own():
    number = next(count)
    run.step(number)
    with StepTraceAnnotation("own", step_num=number):
        step()
    if number == 0:
        assert StepTraceAnnotation.__init__ is before
if {rounds.startswith("[own]")}:
    own()
    count = iter(range(9))
traced(*{rounds})
report(steps=steps())
"""
    ended = run_program(program, f"{tmp_path}/runs")
    assert ended.reported == {"steps": marked}, ended.log
