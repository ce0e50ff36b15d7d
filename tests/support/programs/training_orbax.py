"""A JAX loop with checkpoints by Orbax, to be killed and restarted; it keeps a diary without the SDK.

usage: training_orbax.py DIARY CHECKPOINTS STEPS [HANG_AT]

A line of the diary is the activity that starts: `<Unix time> <process id> <activity> <step>`. It is written at once, so
that it survives a kill. Compilations by JAX have their own lines, with start and end.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

SAVE_EVERY = 10
EVAL_EVERY = 13
PAUSE_S = 0.2
"""Shortest step: a kill loses up to a second of records, so only a few steps."""


class Diary:
    """The program's own log of its activities."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def begins(self, what: str, step: int = -1) -> None:
        os.write(self._file, f"{time.time():.6f} {os.getpid()} {what} {step}\n".encode())

    def compiled(self, event: str, duration: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            end = time.time()
            os.write(self._file, f"{end - duration:.6f} {os.getpid()} compiled {end:.6f}\n".encode())


def main(diary: Diary, checkpoints: Path, steps: int, hang_at: int | None) -> None:
    diary.begins("import")
    import jax
    import jax.numpy as jnp
    import numpy as np
    import orbax.checkpoint as ocp
    from mldiagnostics import machinelearning_run
    from mldiagnostics.integrations.orbax import MLDiagnosticsLogger

    jax.monitoring.register_event_duration_secs_listener(diary.compiled)

    step = jax.jit(lambda weights, batch: jax.lax.fori_loop(0, 30, lambda _, w: jnp.tanh(w @ batch) / 2, weights))

    def compute(weights: jax.Array, batch: np.ndarray[Any, Any]) -> jax.Array:
        time.sleep(PAUSE_S)
        return step(weights, batch).block_until_ready()

    random = np.random.default_rng(0)
    diary.begins("begin")
    with machinelearning_run("goodput", run_workload_id="goodput") as run:
        recorder = run.recorder
        diary.begins("init")
        with recorder.tpu_init():
            jax.devices()
        diary.begins("prepare")
        with recorder.training_preparation():
            weights = jnp.ones((512, 512))
            manager = ocp.CheckpointManager(
                checkpoints, options=ocp.CheckpointManagerOptions(max_to_keep=2), logger=MLDiagnosticsLogger(recorder)
            )
        last = manager.latest_step()
        if last is not None:
            diary.begins("restore", last)
            weights = manager.restore(last, args=ocp.args.StandardRestore({"weights": weights}))["weights"]
        for number in range(0 if last is None else last + 1, steps):
            diary.begins("load", number)
            with recorder.data_loading():
                batch = random.normal(size=(512, 512)).astype(np.float32)
            diary.begins("step", number)
            run.step(number)
            diary.begins("compute", number)
            while number == hang_at:
                time.sleep(1)
            weights = compute(weights, batch)
            if number % SAVE_EVERY == SAVE_EVERY - 1:
                diary.begins("save", number)
                manager.save(number, args=ocp.args.StandardSave({"weights": weights}))
            if number % EVAL_EVERY == EVAL_EVERY - 1:
                diary.begins("eval", number)
                with recorder.event("eval"):
                    compute(weights, batch)
        diary.begins("finish")
        manager.wait_until_finished()
        diary.begins("end")


if __name__ == "__main__":
    main(Diary(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else None)
