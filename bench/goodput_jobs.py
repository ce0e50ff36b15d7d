"""Histories of running jobs, as payloads with the peer's keys in order of time; standard library only."""

from collections.abc import Iterator
from typing import Any

JOB, LOGGER = "bench", "goodput_bench"
STEP_S = 2.0
EVERY_RESTART, REDONE, OUTAGE_S = 1000, 10, 300.0
EVERY_EVENT, EVENT_S = 100, 0.5
PROFILES = ("maxtext", "steps", "restarts", "events")

Payload = dict[str, Any]


def payloads(profile: str, steps: int, start: float) -> Iterator[Payload]:
    """Yield the entries of a job that started at `start` (POSIX seconds), for this number of steps.

    Profiles: `maxtext` has start and end of a load for each step; `steps` has steps only; `restarts` has a restart
    every 1000 steps that repeats ten; `events` has a custom event in every hundredth step.
    """
    t, index = start, 0
    yield _at(t, "job_start_time")
    for number in range(steps):
        if profile == "restarts" and number and number % EVERY_RESTART == 0:
            t += OUTAGE_S
            yield _at(t, "job_start_time")
            t, index = t + STEP_S, index - REDONE
        if profile == "maxtext":
            yield _at(t + 0.5, "data_loading_start_time")
            yield _at(t + 0.6, "data_loading_end_time")
        t += STEP_S + _jitter(number)
        yield {"job_name": JOB, "step_count": index, **_time(t, "step_start_time")}
        if profile == "events" and number % EVERY_EVENT == 0:
            for moment, edge in ((t + 0.25, "start"), (t + 0.25 + EVENT_S, "end")):
                kind = {"custom_badput_event_type": "EVAL"}
                yield {"job_name": JOB, **kind, **_time(moment, f"custom_badput_event_{edge}_time")}
        index += 1


def started(profile: str, steps: int, now: float) -> float:
    """Return the start of a job whose last entry is a minute before `now`."""
    outages = steps // EVERY_RESTART * (OUTAGE_S + STEP_S) if profile == "restarts" else 0.0
    return float(int(now - 60 - steps * (STEP_S + 0.001) - outages))


def time_of(payload: Payload) -> float:
    """Return the time of an entry, which is its last value."""
    return float(next(reversed(payload.values())))


def _jitter(number: int) -> float:
    """Return up to a millisecond, different for each step, the same in every run."""
    return number * 7919 % 1009 / 1_009_000


def _at(t: float, key: str) -> Payload:
    return {"job_name": JOB, **_time(t, key)}


def _time(t: float, key: str) -> Payload:
    return {key: round(t, 6)}
