"""What a log says of an event: the keys of ml-goodput-measurement and ours, to and from events of the ledger; pure.

A payload is a flat dict with `job_name` and the keys of one event. Ours are those that the peer has no words for:
`step_end_time`, `checkpoint_save_…` and `checkpoint_restore_…` with `checkpoint_step`, `program_startup_…`,
`disruption_cause` with `disruption_time`, `clock_step_us` with `clock_step_time`, which is not an event (see `clocks`);
and beside them `rank`, `attempt`, `event_id`, `run_id`. No key but those of
moments has "time" in its name: the peer takes the first such key for the moment of the entry.

Times are POSIX seconds. What cannot be meant is a reason, never an exception. Orbax tells what is over: a save or a
restore is one event with its end in it, and a save that a preemption asked for is two events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.events import CheckpointEvent, Event, EventCode, SliceCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.goodput.events import Arg

__all__ = ["PLAIN_KEYS", "STEP_KEYS", "micros", "parse", "payload_of"]

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
"""Keys of moments that need no other key."""

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
"""When training was blocked, and for how long."""

_END_OF_TIME = 7_258_118_400.0  # the year 2200; a time in milliseconds is far beyond
_MAX_STEP = 2**31 - 1
_MAX_TYPE = 200


class _Unmeant(Exception):
    """The payload says nothing that can be believed; the message is the reason, one of a few."""


def parse(
    payload: Mapping[str, Any], *, rank: int = 0, run: str = "", logged: float | None = None
) -> tuple[Event, ...] | str:
    """Return the events that a payload tells of, or why there is none.

    `rank` and `run` are those of the file; what the payload itself says wins. `logged` is when the entry was logged, in
    POSIX seconds, for one that says how long something took and not when it began.
    """
    try:
        if "rank" in payload:
            rank = _count(payload["rank"], "bad rank")
        if payload.get("run_id"):
            run = _text(payload["run_id"], "bad run id")
        return tuple([Event(t, code, arg, rank, run) for t, code, arg in _told(payload, logged)])
    except _Unmeant as reason:
        return str(reason)
    except Exception:  # noqa: BLE001 - a mapping of somebody else's may do anything
        return "unreadable payload"


def payload_of(event: Event, job_name: str) -> dict[str, Any]:
    """Return the payload that `parse` reads as this event. Raises `ValueError` for ALIVE, which has none."""
    key = _KEY_OF.get(event.code)
    if key is None:
        raise ValueError(f"{event.code.name} has no payload")
    return {"job_name": job_name, **_beside(event), key: event.t / 1e6}


def micros(value: object) -> int | None:
    """Return a time in POSIX seconds as whole microseconds; None if it is none between 1970 and 2200."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _END_OF_TIME:
        return None
    return round(value * 1e6)


def _whole(value: object) -> int | None:
    """Return the index of a step, which may have come through a format that has only floats; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_STEP:
        return None
    return int(value) if value == int(value) else None


def _told(payload: Mapping[str, Any], logged: float | None) -> list[tuple[int, EventCode, Arg]]:
    if "event_type" in payload and (kind := payload["event_type"]) in _ORBAX:
        return _checkpoint(_ORBAX[kind], payload, logged)
    found = [(_moment(payload[key]), *_READERS[key](payload, key)) for key in payload if key in _READERS]
    if not found:
        raise _Unmeant("no known event")
    return found


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
"""Key of a moment -> what happened then."""


def _checkpoint(code: EventCode, payload: Mapping[str, Any], logged: float | None) -> list[tuple[int, EventCode, Arg]]:
    """Read what Orbax logs of a save or a restore: every field may be null."""
    start, took = map(payload.get, _ORBAX_TIMES[code])
    found: list[tuple[int, EventCode, Arg]] = []
    if took is not None and (start is not None or logged is not None):
        length = micros(took)
        if length is None:
            raise _Unmeant("bad duration")
        began = _moment(start) if start is not None else _moment(logged) - length
        directory = payload.get("directory")
        tier = "" if not isinstance(directory, str) else "persistent" if directory.startswith("gs://") else "local"
        found.append((began, code, CheckpointEvent(began + length, _checkpoint_step(payload.get("step")), tier)))
    if payload.get("reached_preemption") is True:
        told = [payload.get("preemption_received_at"), start, logged]
        if moments := [t for t in map(micros, told) if t is not None]:
            found.append((moments[0], EventCode.CAUSE, "preemption"))
    if not found:
        raise _Unmeant("checkpoint without times")
    return found


def _beside(event: Event) -> dict[str, Any]:
    """Return what a payload says beside the moment."""
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
        raise _Unmeant("bad time")
    return t


def _count(value: object, reason: str) -> int:
    number = _whole(value)
    if number is None:
        raise _Unmeant(reason)
    return number


def _checkpoint_step(value: object) -> int:
    number = _whole(value)
    return -1 if number is None else number


def _text(value: object, reason: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_TYPE:
        raise _Unmeant(reason)
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
