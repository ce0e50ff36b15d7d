"""Values of hosts over time, out of files of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_view.curves.queries import CurveQuery, curves_of, metrics_of
from mldiagnostics_view.curves.rank_columns import RankQuery, rank_columns, steps_at_times
from mldiagnostics_view.curves.reader import CurveReader
from support.run_files import put_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACE = {0: 2.0, 1: 2.0, 2: 4.0}
"""Seconds that a step takes on each rank."""
BEAT_S = 10.0


def process(rank: int, start: float, first_step: int, attempt: int = 0) -> list[Record]:
    """A process of 400 s, with a heartbeat and a system metric every 10 s."""
    host = {"hostname": f"host-{rank}", "process_index": str(rank)}
    common = {"rank": rank, "attempt": attempt, "payload": None}
    records = []
    for beat in range(40):
        t, step = start + beat * BEAT_S, first_step + int(beat * BEAT_S / PACE[rank])
        records += [
            Record("heartbeat", t, "alive", None, step, {}, unit="", **(common | {"payload": {"intervalSeconds": 10}})),
            Record("metric", t, "host_cpu_utilization", 10.0 * rank, None, host, unit="%", **common),
        ]
    return records


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[CurveReader]:
    store = open_store(str(tmp_path))
    for rank in PACE:
        put_records(store, "run", f"a0-r{rank}-aaaaaaa{rank}-00001", *process(rank, 1000.0, 0))
    put_records(store, "run", "a1-r0-bbbbbbb0-00001", *process(0, 2000.0, 100, attempt=1))
    reader = CurveReader(str(tmp_path / "run"))
    while not reader.read(1.0):
        pass
    yield reader
    reader.close()


def test_heartbeats_show_the_slow_host(reader: CurveReader) -> None:
    shown = rank_columns(reader, RankQuery(metric=None, columns=14))
    assert (shown["ranks"], shown["from"], shown["to"]) == ([0, 1, 2], 1000.0, 2390.0)
    for rank, row in zip(shown["ranks"], shown["rows"], strict=True):
        assert {value for value in row if value is not None} == {PACE[rank]}
        assert row[:3] == [PACE[rank]] * 3
    assert shown["rows"][0][-1] == PACE[0]
    assert shown["rows"][2][-1] is None  # it had no second attempt
    times = steps_at_times(reader)
    assert times["t"] == sorted(times["t"])
    assert (times["step"][0], times["step"][times["t"].index(2000.0)]) == (0, 100)


def test_metrics_of_hosts_are_joined_or_apart(reader: CurveReader) -> None:
    shown = rank_columns(reader, RankQuery(metric="host_cpu_utilization", columns=4))
    assert [row[0] for row in shown["rows"]] == [0.0, 10.0, 20.0]
    [metric] = metrics_of(reader)["metrics"]
    assert (metric["ranks"], metric["steps"], metric["times"]) == (3, None, [1000.0, 2390.0])

    def labels(by: str) -> list[tuple[int, int | None, dict[str, str]]]:
        query = CurveQuery(("host_cpu_utilization",), "time", None, None, 4, by)
        return [(each["attempt"], each["rank"], each["labels"]) for each in curves_of(reader, query)["curves"]]

    assert labels("run") == [(0, None, {}), (1, None, {})]
    assert labels("rank") == [(0, 0, {}), (0, 1, {}), (0, 2, {}), (1, 0, {})]
