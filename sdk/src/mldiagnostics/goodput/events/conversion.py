"""Conversion between payloads of a log and events of the ledger; pure.

A payload is a flat dict with `job_name` and the keys of one event: those of ml-goodput-measurement, and our own
`step_end_time`, `checkpoint_save_…` and `checkpoint_restore_…` with `checkpoint_step`, `program_startup_…`,
`disruption_cause` with `disruption_time`, and `clock_step_us` with `clock_step_time`, which is not an event (see
`clocks`). `rank`, `attempt`, `event_id` and `run_id` can stand beside them. Only keys of moments have "time" in their
name: ml-goodput-measurement uses the first such key as the moment of the entry.

Times are POSIX seconds. An invalid payload returns a reason and never raises. Orbax logs a save or restore when it
ends: it is one event, and a save before a preemption is two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode, SliceCounts
from mldiagnostics.goodput.events.payloads import MAX_STEP
from mldiagnostics.locations import is_bucket
from mldiagnostics.text.timestamps import END_OF_TIME_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.goodput.events.event import Arg


PLAIN_KEYS = {
    "job_start_time": EventCode.JOB_START,
    "job_end_time": EventCode.JOB_END,
    "tpu_init_start_time": EventCode.TPU_INIT_START,
    "tpu_init_end_time": EventCode.TPU_INIT_END,
    "training_prep_start_time": EventCode.PREP_START,
    "training_prep_end_time": EventCode.PREP_END,
    "data_loading_start_time": EventCode.LOAD_START,
    "data_loading_end_time": EventCode.LOAD_END,
    "elastic_reinit_start_time": EventCode.REINIT_START,
    "elastic_reinit_end_time": EventCode.REINIT_END,
    "program_startup_start_time": EventCode.STARTUP_START,
    "program_startup_end_time": EventCode.STARTUP_END,
}
"""Keys of moments that stand alone."""

STEP_KEYS = {"step_start_time": EventCode.STEP_START, "step_end_time": EventCode.STEP_END}
_CHECKPOINT_KEYS = {
    "checkpoint_save_start_time": EventCode.SAVE_START,
    "checkpoint_save_end_time": EventCode.SAVE_END,
    "checkpoint_restore_start_time": EventCode.RESTORE_START,
    "checkpoint_restore_end_time": EventCode.RESTORE_END,
}
_CUSTOM_KEYS = {
    "custom_badput_event_start_time": EventCode.CUSTOM_START,
    "custom_badput_event_end_time": EventCode.CUSTOM_END,
}
_WAIT_KEYS = {"elastic_wait_start_time": 0, "elastic_wait_end_time": 1}
_SLICES_KEY = "elastic_slice_counts_timestamp"
_CAUSE_KEY = "disruption_time"
_ORBAX = {"save": EventCode.SAVED, "restore": EventCode.RESTORED, "emergency_restore": EventCode.RESTORED}
_ORBAX_TIMES = {
    EventCode.SAVED: ("checkpoint_manager_blocking_start_time", "checkpoint_manager_blocking_duration_secs"),
    EventCode.RESTORED: ("checkpoint_manager_start_time", "checkpoint_manager_duration_secs"),
}
"""Keys of the moment at which training was blocked, and of the duration."""

_CAUSES = {
    "Preempted": "preemption",
    "Terminated": "signal",
    "Terminating": "signal",
    "Interrupted": "signal",
    "UncaughtException": "exception",
    "UncaughtExceptionInThread": "exception",
    "ExitCode": "exit code",
}
_MAX_TYPE = 200


class _InvalidPayload(Exception):
    """A payload without a valid event; the message is the reason."""


def parse(
    payload: Mapping[str, Any], *, rank: int = 0, run: str = "", logged: float | None = None
) -> tuple[Event, ...] | str:
    """Return the events of a payload, or the reason why it has none.

    Args:
        rank: Rank of the file; a rank in the payload overrides it.
        run: Run id of the file; one in the payload overrides it.
        logged: When the entry was logged, in POSIX seconds, for payloads with a duration and without a start.
    """
    try:
        if "rank" in payload:
            rank = _count(payload["rank"], "bad rank")
        if payload.get("run_id"):
            run = _text(payload["run_id"], "bad run id")
        return tuple([Event(t, code, arg, rank, run) for t, code, arg in _events(payload, logged)])
    except _InvalidPayload as reason:
        return str(reason)
    except Exception:  # noqa: BLE001 - a foreign mapping may raise anything
        return "unreadable payload"


def payload_of(event: Event, job_name: str) -> dict[str, Any]:
    """Return the payload of an event. Raises `ValueError` for ALIVE, which has none."""
    key = _KEY_OF.get(event.code)
    if key is None:
        raise ValueError(f"{event.code.name}: this kind of event has no payload")
    return {"job_name": job_name, **_details(event), key: event.t / 1e6}


def cause_of_end(reason: object) -> str | None:
    """Return the cause of the end of an attempt, by the reason of the run's phase.

    A process may be killed while it handles a signal, so `Terminating` is a reason too.
    """
    return _CAUSES.get(str(reason))


def micros(value: object) -> int | None:
    """Return POSIX seconds as whole microseconds; None unless between 1970 and 2200."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < END_OF_TIME_S:
        return None
    return round(value * 1e6)


def _whole(value: object) -> int | None:
    """Return a step index, which can be a whole float; None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_STEP:
        return None
    return int(value) if value == int(value) else None


def _events(payload: Mapping[str, Any], logged: float | None) -> list[tuple[int, EventCode, Arg]]:
    if "event_type" in payload and (kind := payload["event_type"]) in _ORBAX:
        return _checkpoint(_ORBAX[kind], payload, logged)
    events = [(_moment(payload[key]), *_READERS[key](payload, key)) for key in payload if key in _READERS]
    if not events:
        raise _InvalidPayload("no known event")
    return events


def _plain(_: Mapping[str, Any], key: str) -> tuple[EventCode, Arg]:
    return PLAIN_KEYS[key], 0


def _step(payload: Mapping[str, Any], key: str) -> tuple[EventCode, Arg]:
    return STEP_KEYS[key], _count(payload.get("step_count"), "bad step")


def _own_checkpoint(payload: Mapping[str, Any], key: str) -> tuple[EventCode, Arg]:
    return _CHECKPOINT_KEYS[key], _checkpoint_step(payload.get("checkpoint_step"))


def _custom(payload: Mapping[str, Any], key: str) -> tuple[EventCode, Arg]:
    return _CUSTOM_KEYS[key], _text(payload.get("custom_badput_event_type"), "bad event type").upper()


def _wait(payload: Mapping[str, Any], key: str) -> tuple[EventCode, Arg]:
    kind = _text(payload.get("elastic_wait_event_type"), "bad event type").lower()
    opens = EventCode.SCALE_UP_START if "scale_up" in kind else EventCode.SLICE_DOWN_START
    return EventCode(opens + _WAIT_KEYS[key]), 0


def _slices(payload: Mapping[str, Any], _: str) -> tuple[EventCode, Arg]:
    counts = (payload.get(f"{name}_slices") for name in SliceCounts._fields)
    return EventCode.SLICES, SliceCounts(*(_count(count, "bad slice count") for count in counts))


def _cause(payload: Mapping[str, Any], _: str) -> tuple[EventCode, Arg]:
    return EventCode.CAUSE, _text(payload.get("disruption_cause"), "bad cause")


_READERS: dict[str, Callable[[Mapping[str, Any], str], tuple[EventCode, Arg]]] = {
    **dict.fromkeys(PLAIN_KEYS, _plain),
    **dict.fromkeys(STEP_KEYS, _step),
    **dict.fromkeys(_CHECKPOINT_KEYS, _own_checkpoint),
    **dict.fromkeys(_CUSTOM_KEYS, _custom),
    **dict.fromkeys(_WAIT_KEYS, _wait),
    _SLICES_KEY: _slices,
    _CAUSE_KEY: _cause,
}
"""Reader of the event code and argument, by the key of the moment."""


def _checkpoint(code: EventCode, payload: Mapping[str, Any], logged: float | None) -> list[tuple[int, EventCode, Arg]]:
    """Read Orbax's entry of a save or restore; every field may be null."""
    start, took = map(payload.get, _ORBAX_TIMES[code])
    events: list[tuple[int, EventCode, Arg]] = []
    if took is not None and (start is not None or logged is not None):
        length = micros(took)
        if length is None:
            raise _InvalidPayload("bad duration")
        start_us = _moment(start) if start is not None else _moment(logged) - length
        directory = payload.get("directory")
        tier = "" if not isinstance(directory, str) else "persistent" if is_bucket(directory) else "local"
        events.append((start_us, code, CheckpointEvent(start_us + length, _checkpoint_step(payload.get("step")), tier)))
    if payload.get("reached_preemption") is True:
        times = [payload.get("preemption_received_at"), start, logged]
        if moments := [t for t in map(micros, times) if t is not None]:
            events.append((moments[0], EventCode.CAUSE, "preemption"))
    if not events:
        raise _InvalidPayload("checkpoint without times")
    return events


def _details(event: Event) -> dict[str, Any]:
    """Return the keys of a payload besides its moment."""
    code, arg = event.code, event.arg
    if isinstance(arg, SliceCounts):
        return {f"{name}_slices": number for name, number in arg._asdict().items()}
    if isinstance(arg, CheckpointEvent):
        return {
            "event_type": "save" if code is EventCode.SAVED else "restore",
            "step": None if arg.step == -1 else arg.step,
            "directory": {"persistent": "gs://", "local": "/"}.get(arg.tier),
            _ORBAX_TIMES[code][1]: (arg.until - event.t) / 1e6,
        }
    if code in _WAITS:
        return {"elastic_wait_event_type": _WAITS[code]}
    name = _NAME_OF.get(code)
    return {} if name is None or arg == -1 else {name: arg}


def _moment(value: object) -> int:
    t = micros(value)
    if t is None:
        raise _InvalidPayload("bad time")
    return t


def _count(value: object, reason: str) -> int:
    number = _whole(value)
    if number is None:
        raise _InvalidPayload(reason)
    return number


def _checkpoint_step(value: object) -> int:
    number = _whole(value)
    return -1 if number is None else number


def _text(value: object, reason: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_TYPE:
        raise _InvalidPayload(reason)
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


_WAITS = {
    EventCode.SLICE_DOWN_START: "slice_down",
    EventCode.SLICE_DOWN_END: "slice_down",
    EventCode.SCALE_UP_START: "scale_up",
    EventCode.SCALE_UP_END: "scale_up",
}
_NAME_OF = {
    **dict.fromkeys(STEP_KEYS.values(), "step_count"),
    **dict.fromkeys(_CHECKPOINT_KEYS.values(), "checkpoint_step"),
    **dict.fromkeys(_CUSTOM_KEYS.values(), "custom_badput_event_type"),
    EventCode.CAUSE: "disruption_cause",
}
_KEY_OF: dict[EventCode, str] = {
    **{code: key for keys in (PLAIN_KEYS, STEP_KEYS, _CHECKPOINT_KEYS, _CUSTOM_KEYS) for key, code in keys.items()},
    **{code: f"elastic_wait_{('start', 'end')[code % 2]}_time" for code in _WAITS},
    **{code: key for code, (key, _) in _ORBAX_TIMES.items()},
    EventCode.SLICES: _SLICES_KEY,
    EventCode.CAUSE: _CAUSE_KEY,
}
