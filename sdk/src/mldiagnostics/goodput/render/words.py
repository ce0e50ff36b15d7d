"""Durations, times and shares as text; pure."""

from __future__ import annotations

from datetime import datetime, timezone

_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def duration(seconds: float | None) -> str:
    """Return a duration in its two largest units, `-` for None."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    for size, unit, small_size, small_unit in _UNITS:
        if whole >= size:
            small = whole % size // small_size
            return f"{whole // size} {unit}" + (f" {small:02} {small_unit}" if small else "")
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def moment(seconds: float, *, day: bool = True) -> str:
    """Return a POSIX time in UTC, without a time zone suffix."""
    time = datetime.fromtimestamp(seconds, tz=timezone.utc)
    return time.strftime("%Y-%m-%d %H:%M:%S" if day else "%H:%M:%S")


def percent(share: float | None, digits: int = 2) -> str:
    """Return a share in percent, `-` for None; only exact 0 and 1 read as 0 and 100."""
    if share is None:
        return "-"
    smallest = 10.0**-digits
    if 0 < share * 100 < smallest / 2:
        return f"<{smallest:.{digits}f}"
    if 100 - smallest / 2 <= share * 100 < 100:
        return f">{100 - smallest:.{digits}f}"
    return f"{share * 100:.{digits}f}"


def share_of(part: float | None, digits: int = 2) -> str:
    """Return a share as `percent` does, with a percent sign."""
    return "-" if part is None else f"{percent(part, digits)} %"


def short(name: str) -> str:
    """Return a name, shortened if it is a generated id."""
    return name[:_ID_SHOWN] if len(name) >= _ID and not set(name) - _HEX else name


def label(bucket: str) -> str:
    """Return the label of a bucket, such as `custom: eval`."""
    name, _, custom = bucket.partition(".")
    return f"custom: {custom.lower()}" if custom else _WORDS.get(name, name.lower().replace("_", " "))


_HEX = frozenset("0123456789abcdef")
_ID, _ID_SHOWN = 32, 11

_WORDS = {
    "TPU_INITIALIZATION": "accelerator initialisation",
    "TRAINING_PREP": "training preparation",
    "PROGRAM_STARTUP": "program startup (compilation)",
    "DATA_LOADING_SYNC": "waiting for data",
    "DATA_LOADING_ASYNC": "data loading during steps",
    "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": "checkpoint save",
    "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME": "checkpoint restore",
    "WASTED_PROGRESS_FROM_DISRUPTION": "wasted progress",
    "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": "infrastructure recovery",
    "CUSTOM_BADPUT_EVENTS": "custom events",
    "OTHER": "other",
    "ELASTIC_SLICE_DOWN": "elastic: slice down",
    "ELASTIC_SCALE_UP": "elastic: scale up",
    "ELASTIC_REINITIALIZATION": "elastic: re-initialisation",
}
