"""Each compilation of JAX is recorded once, for the training thread, and JAX is not loaded for it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import read_records
from support.programs.examples import python
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

    from support.programs.processes import Ended

pytestmark = pytest.mark.peers

BEGIN = """
import json, sys, threading, time
from mldiagnostics import machinelearning_run

def begin():
    return machinelearning_run("job", run_workload_id="job", log_system_metrics=False)
"""
EVENTS = """
def seen():
    events = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **_: events.append((event, duration, time.time()))
    )
    return events
"""


def spans(programs: Programs) -> list[tuple[float, float]]:
    """Return start and end of the recorded startup of the program."""
    moments = [
        (key.removeprefix("program_startup_"), float(str(value)))
        for record in read_records(programs.storage, "job", kinds={"event"})
        for key, value in (record.payload or {}).items()
        if key.startswith("program_startup_")
    ]
    assert [key for key, _ in moments] == ["start_time", "end_time"] * (len(moments) // 2)
    times = [t for _, t in moments]
    return list(zip(times[::2], times[1::2], strict=True))


def run(programs: Programs, body: str) -> Ended:
    ended = programs.run(f"{BEGIN}{body}", env={"JAX_PLATFORMS": "cpu"})
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    return ended


@pytest.mark.parametrize("environment", [None, "jax-0.8"])
def test_every_compilation_is_recorded_once(tmp_path: Path, environment: str | None) -> None:
    programs = Programs(tmp_path, python(environment)) if environment else Programs(tmp_path)
    ended = run(
        programs,
        f"""
import jax, jax.numpy as jnp
{EVENTS}
before = seen()
begin()
after = seen()

@jax.jit
def inner(x):
    return jnp.tanh(x) @ x

@jax.jit
def outer(x):
    constant = jax.jit(lambda y: y + 1)(jnp.ones(4))  # compiled while the outer one is traced
    with jax.ensure_compile_time_eval():
        constant = jax.jit(lambda y: y * 2)(jnp.ones(4))
    return inner(x) + constant.sum()

for _ in range(3):
    outer(jnp.ones((8, 8))).block_until_ready()
print(json.dumps([
    (then - duration, now)
    for (event, duration, now), (_, _, then) in zip(before, after, strict=True)
    if event.startswith("/jax/core/compile/")
]))
""",
    )
    # The run receives an event between the program's own two: its start is at most this, and its end at least.
    phases = [(start, end) for start, end in json.loads(ended.out)]
    compilations = spans(programs)
    assert all(end <= start for (_, end), (start, _) in pairwise(compilations))
    for start, end in phases:
        assert any(first <= start + 0.001 and end <= last + 0.001 for first, last in compilations), (start, end)
    assert 3 <= len(compilations) < len(phases)


def test_what_other_threads_compile_holds_nothing_up(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    run(
        programs,
        """
import jax, jax.numpy as jnp
begin()
other = threading.Thread(target=lambda: jax.jit(lambda x: x + 1)(jnp.ones(3)))
other.start()
other.join()
""",
    )
    assert spans(programs) == []


def test_jax_may_come_after_the_run_and_outlive_it(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    run(
        programs,
        """
first = begin()
assert "jax" not in sys.modules
first.step()
import jax, jax.numpy as jnp
first.step()
jax.jit(lambda x: x + 1)(1.0)
first.close()
jax.jit(lambda x: x + 2)(1.0)
""",
    )
    [*_, (start, end)] = spans(programs)
    assert 0 < end - start < 60
    assert len(spans(programs)) <= 6
