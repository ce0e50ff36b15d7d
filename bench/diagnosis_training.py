"""One process of a JAX job on CPU, whose faults a parent changes: `python -m bench.diagnosis_training OPTIONS`.

It reads a line of JSON with faults from standard input, and answers with the time of its steps once it runs with them.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.diagnosis_faults import Fault
from bench.diagnosis_programs import BATCH, BURNT, WIDTH, build, burn

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.diagnosis_programs import Program

SETTLE_STEPS = 4
MEASURED_STEPS = 6
GARBAGE = 50_000


def spend(seconds: float, *, is_busy: bool) -> None:
    """Sleep, or compute in Python."""
    if not is_busy:
        time.sleep(seconds)
        return
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(200))


@dataclass
class Host:
    """The training loop of one process with its faults."""

    rank: int
    program: Program
    pauses_s: float
    faults: list[Fault] = field(default_factory=list)
    names: tuple[str, ...] = ("train", "load", "other")
    step_s: float = 0.05
    garbage: list[list[int]] = field(default_factory=list)
    collection_s: float = 1.0
    turn_s: float = 1.0
    local: Callable[..., Any] | None = None
    callback: Callable[..., Any] | None = None

    def change(self, command: dict[str, Any], step_s: float) -> None:
        """Take faults and names; functions are compiled, and garbage is made, before the capture."""
        self.faults = [Fault(**fault) for fault in command["faults"] if fault["rank"] == self.rank]
        self.names, self.step_s = tuple(command["names"]), step_s
        kinds = {fault.kind for fault in self.faults}
        self.garbage = []
        gc.freeze()  # the modules of JAX
        if "collection" in kinds:
            self.garbage = [[number] for number in range(GARBAGE)]
            self.collection_s = _shortest(gc.collect)
        self.local, turn_s = _calibrated(self.names[2])
        self.turn_s = min(self.turn_s, turn_s)  # other work on the machine only makes a measurement longer
        self.callback = _local_callback(self.names[2])
        self.callback(np.float32(0)).block_until_ready()

    def run_step(self, number: int) -> None:
        """Execute one step, with the faults of this step."""
        due = {fault.kind: fault for fault in self.faults if number % fault.period == fault.turn}
        with jax.profiler.StepTraceAnnotation(self.names[0], step_num=number):
            batch = self.fetch(due.get("input"))
            self.work_in_python(due)
            turns = self.work_on_device(due)
            loss = self.program.step(batch, turns, self.delay_of(due.get("callback"), 1))
            if self.program.reads_loss:
                float(loss.addressable_data(0))
            else:
                loss.block_until_ready()
            if "checkpoint" in due:
                self.save(due["checkpoint"])

    def fetch(self, fault: Fault | None) -> jax.Array:
        """Return the next batch of this host on its device."""
        annotation = jax.profiler.TraceAnnotation(self.names[1]) if self.program.marks_input else nullcontext()
        with annotation:
            time.sleep(self.pauses_s)
            if fault:
                spend(fault.share * self.step_s, is_busy=fault.is_busy)
            return self.program.on_device(np.random.default_rng(0).normal(size=(BATCH, WIDTH)).astype(np.float32))

    def work_in_python(self, due: dict[str, Fault]) -> None:
        """Spend time of this thread between two launches."""
        if fault := due.get("python"):
            with jax.profiler.TraceAnnotation(self.names[2]) if fault.place else nullcontext():
                spend(fault.share * self.step_s, is_busy=fault.is_busy)
        if fault := due.get("collection"):
            for _ in range(max(round(fault.share * self.step_s / self.collection_s), 1)):
                gc.collect()
        if due.get("compilation"):
            jax.jit(lambda x: jnp.sin(x) * 2)(np.float32(1)).block_until_ready()

    def work_on_device(self, due: dict[str, Fault]) -> tuple[int, int]:
        """Launch other functions; return the additional turns inside of the program, forwards and backwards."""
        if (fault := due.get("callback")) and self.delay_of(fault, 0) and self.callback:
            self.callback(np.float32(self.delay_of(fault, 0))).block_until_ready()
        if fault := due.get("device"):
            turns = self.turns_of(fault)
            if fault.place and self.program.has_places:
                return turns, 0
            if self.local:
                self.local(jnp.int32(turns)).block_until_ready()
        if fault := due.get("backward"):
            return 0, self.turns_of(fault)
        return 0, 0

    def turns_of(self, fault: Fault) -> int:
        """Return how often the slow function repeats its work."""
        return max(round(fault.share * self.step_s / self.turn_s), 1)

    def delay_of(self, fault: Fault | None, place: int) -> float:
        """Return the seconds of the callback at a place: in a function of its own, or inside of the program."""
        if fault is None or (fault.place if self.program.has_callback else 0) != place:
            return 0.0
        return fault.share * self.step_s

    def save(self, fault: Fault) -> None:
        """Write the parameters to a file, again and again until the time is over."""
        end = time.perf_counter() + fault.share * self.step_s
        with jax.profiler.TraceAnnotation(self.names[2]) if fault.place else nullcontext():
            arrays = jax.device_get(self.program.parameters())
            with tempfile.TemporaryFile() as file:
                while time.perf_counter() < end:
                    for array in arrays:
                        file.write(array.tobytes())
                    os.fsync(file.fileno())
                    file.seek(0)


def _local_callback(name: str) -> Callable[..., Any]:
    def wait(seconds: Any) -> Any:
        time.sleep(float(seconds))
        return np.float32(0)

    def call(seconds: Any) -> Any:
        return jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), seconds)

    call.__name__ = name
    function: Callable[..., Any] = jax.jit(call)
    return function


def _calibrated(name: str) -> tuple[Callable[..., Any], float]:
    """Return a slow device function, and the shortest time of one of its turns."""

    def slow(turns: Any) -> Any:
        return burn(jnp.ones((BURNT, BURNT)), turns)

    slow.__name__ = name
    function = jax.jit(slow)
    function(jnp.int32(1)).block_until_ready()
    return function, _shortest(lambda: function(jnp.int32(20)).block_until_ready()) / 20


def _shortest(work: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main(options: dict[str, Any]) -> None:
    """Join the job and train until standard input ends."""
    jax.distributed.initialize(options["coordinator"], options["hosts"], options["rank"])
    jax.profiler.start_server(options["port"])
    commands: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(commands,), daemon=True).start()
    host = Host(options["rank"], build(options["style"], options["name"]), options["pauses_s"])
    number, waiting = 0, -1
    times: list[float] = []
    typical: Callable[[list[float]], float] = median
    while True:
        if not commands.empty():
            command = commands.get()
            host.change(command, command["step_s"])
            waiting, times = SETTLE_STEPS + MEASURED_STEPS, []
            typical = fmean if command["faults"] else median  # a fault may be in few of the steps
        start = time.perf_counter()
        host.run_step(number)
        times.append(time.perf_counter() - start)
        number += 1
        waiting -= 1
        if waiting == 0:
            print(json.dumps({"step_s": typical(times[SETTLE_STEPS:])}), flush=True)


def _read(commands: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        commands.put(json.loads(line))
    os._exit(0)  # JAX's own end waits for the other processes


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
