"""The collector keeps the newest state that records show, within its limits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mldiagnostics.control_plane.collector import Collector
from mldiagnostics.control_plane.report import MAX_METRICS, MAX_SESSIONS
from mldiagnostics.identity.origin import Origin
from mldiagnostics.pipeline.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

ORIGIN = Origin("run", "name", "/storage", "0a0a0a0a", "host")


class Woken:
    """Counts the calls about a new profiler server."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def collector(records: Iterable[Record], woken: Woken | None = None) -> Collector:
    made = Collector(ORIGIN, keeps_events=True, on_server=woken or Woken())
    made.write(list(records))
    return made


def session(name: str, state: str, **details: Any) -> Record:
    return Record("session", 5.0, name, payload={"state": state, **details})


def test_the_metrics_that_were_recorded_last_are_kept() -> None:
    numbers = [Record("metric", float(t), f"m{t % 100}", float(t), t) for t in range(1000)]
    again = [Record("metric", 1000.0, "m10", 7.0), Record("metric", 1001.0, "x" * 201, 1.0)]
    collected = collector([*numbers, *again]).collected(0)
    assert len(collected.metrics) == MAX_METRICS
    assert list(collected.metrics)[-2:] == ["m99", "m10"]
    assert collected.metrics["m10"] == 7.0
    assert collected.step == 999


def test_a_number_that_json_lacks_is_null_and_a_series_its_mean() -> None:
    values = {"nan": math.nan, "inf": math.inf, "mean": (1.0, 2.0, 6.0), "unknown": (1.0, math.nan), "none": ()}
    records = [Record("metric", 1.0, name, value, -1) for name, value in values.items()]
    collected = collector(records).collected(0)
    assert collected.metrics == {"nan": None, "inf": None, "mean": 3.0, "unknown": None}
    assert collected.step is None


def test_a_profile_has_its_last_state_and_the_oldest_are_dropped() -> None:
    many = [session(f"s{number}", "recording") for number in range(MAX_SESSIONS + 3)]
    stored = session("s10", "stored", start_ns=2 * 10**9, stop_ns=3 * 10**9, file="f", bytes=1)
    sessions = collector([*many, stored]).collected(0).sessions
    assert len(sessions) == MAX_SESSIONS
    assert sessions[0]["id"] == "s3"
    assert sessions[-1] == {"id": "s10", "directory": "/storage/run", "start": 2.0, "stop": 3.0, "state": "stored"}


def test_a_new_profiler_server_is_reported_at_once() -> None:
    woken = Woken()
    listening = session("on-demand", "listening", port=10_003, server="jax", version="0.10.2")
    collected = collector([listening], woken).collected(0)
    assert collected.profiler == {"port": 10_003, "server": "jax", "version": "0.10.2"}
    assert (woken.times, collected.sessions) == (1, [])


def test_no_events_are_kept_after_the_last_report() -> None:
    beat = Record("heartbeat", 1_790_000_000.0, "alive")
    made = collector([beat])
    made.release()
    made.write([beat])
    assert made.collected(0).event_count == 1


def test_records_of_any_content_are_kept_or_skipped() -> None:
    hostile: list[dict[str, object] | None] = [None, {}, {"state": None}, {"start_ns": "x"}, {"clock_step_us": "x"}]
    records = [
        Record(kind, t, name, payload=payload)
        for payload in hostile
        for t in (-1.0, 1.0, 1e300)
        for kind, name in (("session", "on-demand"), ("event", "goodput"), ("heartbeat", "alive"), ("phase", "Failed"))
    ]
    assert collector(records).collected(0).event_count == len(hostile)  # heartbeats of valid times
