"""Logs for which ml-goodput-measurement 0.2.3 and this project answer differently: the rows of decision 0018."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from support.goodput.entries import JOB, T0, Payload, at, slices, span, step, steps

Answer = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """A query of one log, with the differing parts of both answers; moments are seconds after `T0`.

    `peer` and `ours` are partial: nested dictionaries name only the parts that differ.
    """

    name: str
    entries: list[Payload]
    peer: Answer
    ours: Answer
    op: str = "details"
    elastic: bool = False
    window: tuple[float, float] = (0.0, 1.0)
    exclusions: list[tuple[float, float]] = field(default_factory=list)

    def question(self, t0: float) -> dict[str, Any]:
        """Return the question in the form of `goodput_peer`, with the job started at `t0`."""
        shift = t0 - T0
        return {
            "entries": [(t0 + _order(n), _shifted(payload, shift)) for n, payload in enumerate(self.entries)],
            "elastic": self.elastic,
            "op": self.op,
            "window": [t0 + bound for bound in self.window],
            "exclusions": [(t0 + start, t0 + end) for start, end in self.exclusions],
        }


def _order(number: int) -> float:
    """Return when an entry was logged: in the order of the list, not by its own time."""
    return number * 1e-3


def _shifted(payload: Payload, shift: float) -> Payload:
    return {
        key: value + shift if key.endswith(("_time", "_timestamp")) and isinstance(value, float) else value
        for key, value in payload.items()
    }


def save(number: int, t: float, seconds: float | None, directory: str | None = "gs://bucket/c") -> Payload:
    """Return Orbax's entry of a save that blocked training for some seconds."""
    parts = ("checkpoint_manager_blocking", "checkpointer_blocking", "wait_for_prev", "get_old_steps")
    return _checkpoint("save", number, t, seconds, parts) | {"directory": directory}


def restore(number: int, t: float, seconds: float) -> Payload:
    """Return Orbax's entry of a restore."""
    return _checkpoint("restore", number, t, seconds, ("checkpoint_manager", "checkpointer"))


def _checkpoint(kind: str, number: int, t: float, seconds: float | None, parts: tuple[str, ...]) -> Payload:
    times: Payload = {f"{part}_start_time": T0 + t for part in parts}
    times |= {f"{part}_duration_secs": seconds for part in parts}
    return {"job_name": JOB, "event_type": kind, "step": number, "directory": "gs://bucket/c", **times}


def evaluation(start: float, end: float) -> list[Payload]:
    """Return a custom event."""
    return span("custom_badput_event", start, end, custom_badput_event_type="eval")


START = at("job_start_time", 0)

DIFFERENCES = [
    Difference(
        "nested events",
        [
            *(START, *span("training_prep", 0, 20), restore(0, 5, 10)),
            *(*steps(0, [20, 30, 40]), at("job_end_time", 50)),
        ],
        peer={"badput_time": {"TRAINING_PREP": 20.0, "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME": 10.0}},
        ours={"badput_time": {"TRAINING_PREP": 10.0, "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME": 10.0}},
    ),
    Difference(
        "resume at the next step",
        [
            *(START, *steps(0, [0, 10, 20]), at("job_start_time", 900)),
            *(*steps(3, [920, 930]), at("job_end_time", 940)),
        ],
        peer={"disruption_count": 0, "goodput_time": {"TOTAL": 940.0}},
        ours={
            "disruption_count": 1,
            "goodput_time": {"TOTAL": 50.0},
            "badput_time": {"INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": 870.0},
        },
    ),
    Difference(
        "restart at step 0",
        [
            *(START, *steps(0, [0, 10, 20, 30]), at("job_start_time", 50)),
            *(*steps(0, [60, 70, 80]), at("job_end_time", 90)),
        ],
        peer={"badput_time": {"INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": 20.0, "WASTED_PROGRESS_FROM_DISRUPTION": 0.0}},
        ours={
            "badput_time": {"INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": 20.0, "WASTED_PROGRESS_FROM_DISRUPTION": 30.0}
        },
    ),
    Difference(
        "an event that is logged twice",
        [START, step(0, 10), step(1, 20), step(1, 20), *steps(2, [30, 40]), at("job_end_time", 50)],
        peer={"disruption_count": 1},
        ours={"disruption_count": 0},
    ),
    Difference(
        "entries that arrive late",
        [START, step(0, 10), step(2, 30), step(1, 20), step(3, 40), at("job_end_time", 50)],
        peer={"goodput_time": {"TOTAL": 10.0}},
        ours={"goodput_time": {"TOTAL": 40.0}},
    ),
    Difference(
        "steps that are recorded every second time",
        [START, *(step(2 * n, 10 * n) for n in range(4)), at("job_end_time", 40)],
        peer={"goodput_time": {"TOTAL": 10.0}},
        ours={"goodput_time": {"TOTAL": 40.0}},
    ),
    Difference(
        "a custom event across two steps",
        [START, step(0, 0), step(1, 10), *evaluation(15, 25), step(2, 20), step(3, 40), at("job_end_time", 50)],
        peer={"badput_time": {"CUSTOM_BADPUT_EVENTS": {}}},
        ours={"badput_time": {"CUSTOM_BADPUT_EVENTS": {"EVAL": 10.0}}},
    ),
    Difference(
        "a step that is saved in two attempts",
        [
            *(START, *steps(0, [0, 10, 20]), save(2, 20, 4.0), step(3, 30), at("job_start_time", 50)),
            *(*steps(2, [60]), save(2, 60, 2.0), *steps(3, [72, 82]), at("job_end_time", 92)),
        ],
        peer={"badput_time": {"UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": 3.0}},
        ours={"badput_time": {"UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": 6.0}},
    ),
    Difference(
        "a save that is longer than the steps",
        [START, *steps(0, [10, 12]), save(1, 12, 30.0), at("job_end_time", 20)],
        peer={"error": "ValueError"},
        ours={"badput_time": {"UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": 8.0}},
    ),
    Difference(
        "a save without a duration",
        [START, *steps(0, [0, 10, 20]), save(1, 12, None), at("job_end_time", 30)],
        peer={"error": "TypeError"},
        ours={"goodput_time": {"TOTAL": 30.0}},
    ),
    Difference(
        "a save without a directory",
        [START, *steps(0, [0, 10, 20]), save(1, 12, 3.0, None), at("job_end_time", 30)],
        peer={"error": "AttributeError"},
        ours={"badput_time": {"UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": 3.0}},
    ),
    Difference(
        "a custom event without a type",
        [START, *steps(0, [0, 10, 20]), at("custom_badput_event_start_time", 5), at("job_end_time", 30)],
        peer={"error": "KeyError"},
        ours={"goodput_time": {"TOTAL": 30.0}},
    ),
    Difference(
        "a bucket that fills the job",
        [START, *span("tpu_init", 0, 100), at("job_end_time", 100)],
        op="goodput",
        peer={"badput": {"TPU_INITIALIZATION": 0.0}},
        ours={"badput": {"TPU_INITIALIZATION": 100.0}},
    ),
    Difference(
        "a window after the last entry",
        [START, *steps(0, [0, 10, 20, 30]), at("job_end_time", 900)],
        op="interval",
        window=(100.0, 200.0),
        peer={"error": "ValueError"},
        ours={"goodput": 100.0, "elapsed": 100.0},
    ),
    Difference(
        "an exclusion between events",
        [START, *steps(0, [20, 30, 40]), at("job_end_time", 50)],
        op="exclusions",
        exclusions=[(0.0, 20.0)],
        peer={"excluded": 0.0, "goodput": 60.0},
        ours={"excluded": 20.0, "goodput": 100.0},
    ),
    Difference(
        "steps shorter than a second",
        [START, *steps(0, [0, 0.25, 0.5, 0.75]), at("job_end_time", 1)],
        op="deviation",
        peer={"error": "ValueError"},
        ours={"deviation": {"0": 0.0, "1": 0.0, "2": 0.0}},
    ),
    Difference(
        "a custom event inside a step",
        [START, *steps(0, [0, 2]), *evaluation(3, 9), *steps(2, [10, 12, 14]), at("job_end_time", 16)],
        op="deviation",
        peer={"deviation": {"1": 6.0}},
        ours={"deviation": {"1": 0.0}},
    ),
    Difference(
        "a lost step that is not repeated",
        [
            *(START, *steps(0, [0, 10, 20, 33, 40]), at("job_start_time", 60)),
            *(*steps(1, [70, 80]), at("job_end_time", 90)),
        ],
        op="deviation",
        peer={"deviation": {"3": 3.0}},
        ours={"deviation": {"0": 0.0, "3": 0.0}},
    ),
    Difference(
        "an elastic wait inside a step",
        [
            *(START, slices(0, 4), *steps(0, [0, 10])),
            *span("elastic_wait", 12, 18, elastic_wait_event_type="elastic_slice_down"),
            *(*steps(2, [26, 36]), at("job_end_time", 46)),
        ],
        elastic=True,
        peer={"goodput_time": {"TOTAL": 46.0}, "badput_time": {"ELASTIC_SLICE_DOWN": 6.0}},
        ours={"goodput_time": {"TOTAL": 40.0}, "badput_time": {"ELASTIC_SLICE_DOWN": 6.0}},
    ),
    Difference(
        "an elastic re-initialization without a lost step",
        [
            *(START, slices(0, 4), *steps(0, [0, 10, 20])),
            *span("elastic_reinit", 28, 36),
            *(*steps(3, [40, 50]), at("job_end_time", 60)),
        ],
        elastic=True,
        peer={"disruption_count": 0, "goodput_time": {"TOTAL": 60.0}},
        ours={"disruption_count": 1, "badput_time": {"ELASTIC_REINITIALIZATION": 8.0}},
    ),
    Difference(
        "a load before a restart",
        [
            *(START, *span("data_loading", 0, 6), *steps(0, [6, 16, 26])),
            *(at("job_start_time", 40), *steps(1, [50, 60]), at("job_end_time", 70)),
        ],
        peer={"badput_time": {"DATA_LOADING_SYNC": 12.0}},
        ours={"badput_time": {"DATA_LOADING_SYNC": 6.0}},
    ),
    Difference(
        "a custom event in a lost step",
        [
            *(START, *steps(0, [0, 10]), *evaluation(12, 16), *steps(2, [20]), at("job_start_time", 40)),
            *(*steps(1, [50, 60, 70]), at("job_end_time", 80)),
        ],
        peer={"badput_time": {"WASTED_PROGRESS_FROM_DISRUPTION": 10.0, "CUSTOM_BADPUT_EVENTS": {}}},
        ours={"badput_time": {"WASTED_PROGRESS_FROM_DISRUPTION": 6.0, "CUSTOM_BADPUT_EVENTS": {"EVAL": 4.0}}},
    ),
]
