"""One framework in its own process, recorded by our adapter: through a list of checks, then on demand.

usage: recording_framework.py PORT PROGRESS_FILE FRAMEWORK FOLDER
    Write traces and `seen.json` into the folder, then train and listen, stopped by killing it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "sdk/src"))

from mldiagnostics.profiling.frameworks import recorder
from mldiagnostics.profiling.recorder import Busy

Step = Callable[[], object]
ForeignProfile = Callable[[Path], AbstractContextManager[object]]


def jax() -> tuple[Step, ForeignProfile]:
    import jax
    import jax.numpy as jnp

    multiply = jax.jit(lambda x: jnp.tanh(x @ x) / 2)
    x = jnp.ones((64, 64))

    def step() -> None:
        with jax.profiler.TraceAnnotation("train_step"):
            multiply(x).block_until_ready()

    return step, lambda folder: jax.profiler.trace(str(folder))


def torch() -> tuple[Step, ForeignProfile]:
    import torch

    model = torch.nn.Linear(64, 64)
    x = torch.ones(64, 64)

    def step() -> None:
        with torch.profiler.record_function("train_step"):
            model(x).square().mean().backward()

    return step, lambda _: torch.autograd.profiler.profile(use_kineto=True)


def torch_xla() -> tuple[Step, ForeignProfile]:
    os.environ.setdefault("PJRT_DEVICE", "CPU")
    import torch
    import torch_xla
    from torch_xla.debug import profiler

    x = torch.ones(64, 64, device=torch_xla.device())

    def step() -> None:
        with profiler.Trace("train_step"):
            y = torch.tanh(x @ x)
        torch_xla.sync()
        del y

    @contextmanager
    def foreign(folder: Path) -> Any:
        profiler.start_trace(str(folder))
        yield
        profiler.stop_trace()

    return step, foreign


def tensorflow() -> tuple[Step, ForeignProfile]:
    import tensorflow as tf

    multiply = tf.function(lambda x: tf.tanh(tf.linalg.matmul(x, x)) / 2)
    x = tf.ones((64, 64))

    def step() -> None:
        with tf.profiler.experimental.Trace("train_step"):
            multiply(x)

    return step, lambda folder: tf.profiler.experimental.Profile(str(folder))


def record(adapter: Any, step: Step, foreign: ForeignProfile, folder: Path) -> dict[str, object]:
    """Record during several faults; return the observations, leave traces in the folder."""
    seen: dict[str, object] = {"framework": adapter.framework}

    def keep(name: str, trace: bytes) -> None:
        (folder / f"{name}.xplane.pb").write_bytes(trace)

    first = adapter.start()
    seen["second start"] = refusal(adapter.start)
    for _ in range(5):
        step()
    stopping = threading.Thread(target=lambda: keep("first", first.stop()))  # as a run does
    stopping.start()
    stopping.join()
    with foreign(folder / "foreign"):
        step()
        seen["during a foreign profile"] = refusal(adapter.start)
        step()
    for name in ("again", "and again"):
        recording = adapter.start()
        step()
        keep(name, recording.stop())
    return seen


def refusal(start: Callable[[], object]) -> str:
    try:
        start()
    except Busy:
        return "busy"
    return "recorded"


def main(port: int, progress: Path, framework: str, folder: Path) -> None:
    """Record, then serve and train until killed, slowly, so that the traces stay small."""
    step, foreign = globals()[framework]()
    step()
    adapter = recorder("PYTORCH" if "torch" in framework else framework)
    (folder / "seen.json").write_text(json.dumps(record(adapter, step, foreign, folder)))
    server = adapter.serve(port)
    number = 0
    while server.kind:  # keeps a reference until the end
        step()
        number += 1
        progress.write_text(str(number))
        time.sleep(0.001)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
