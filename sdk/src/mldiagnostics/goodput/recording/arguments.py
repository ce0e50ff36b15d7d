"""Arguments of a recorder's methods, converted without raising into the training."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import datetime
from time import time
from typing import Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.events.payloads import MAX_NAME
from mldiagnostics.pipeline.deferred_value import is_jax_ready
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.values import keep, settle
from mldiagnostics.text.timestamps import END_OF_TIME_S

_FIRST_S = 946_684_800.0
"""The year 2000: smaller numbers are readings of another clock, not POSIX seconds of a job."""


def posix_seconds(moment: object) -> float | None:
    """Return a moment in POSIX seconds; None means now.

    Naive datetimes are local time, as for `datetime.timestamp`. A number below the year 2000, such as a reading of
    `time.monotonic`, is replaced by now with a warning. Any other value returns None, with a warning.
    """
    t = -1.0
    with suppress(Exception):  # methods of a foreign object may raise anything
        if moment is None:
            t = time()
        elif isinstance(moment, datetime):
            t = float(moment.timestamp())
        elif isinstance(moment, int | float) and not isinstance(moment, bool):
            t = float(moment)
            if 0.0 <= t < _FIRST_S:
                warn_once(
                    "goodput-monotonic",
                    f"moment {shown(moment)}: not POSIX seconds (before the year 2000), the event is recorded as now; "
                    "pass time.time(), not time.monotonic() or time.perf_counter(), or leave it out",
                )
                return time()
    if 0.0 <= t < END_OF_TIME_S:
        return t
    warn_once(
        "goodput-time",
        f"moment {shown(moment)!r}: not a moment between 1970 and 2200, the event is dropped; pass a datetime or "
        "POSIX seconds",
    )
    return None


def keep_step(step: Any) -> tuple[Any, int]:
    """Return a step that stays readable, and its size in bytes.

    It does not wait for a device. Arrays of JAX are often donated to the very step whose number they are: a computed
    one is read at once, any other one is copied on its device.
    """
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(step, jax.Array) or isinstance(step, jax.core.Tracer):
        return keep(step)
    if is_jax_ready(step):
        return settle(keep(step)[0]), 0
    return keep(jax.device_put(step.addressable_data(0), may_alias=False))


def are_short(job_name: str, logger_name: str) -> bool:
    """Return whether both names can be recorded; warn if not."""
    for parameter, name in (("job_name", job_name), ("logger_name", logger_name)):
        if len(name) > MAX_NAME:
            warn_once(
                "goodput-name",
                f"{parameter}: {name[:40]!r}… has {len(name)} characters, nothing is recorded; pass at most {MAX_NAME}",
            )
            return False
    return True
