"""Accounts of the time of runs, a few computed at a time, the last ones kept."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from mldiagnostics.goodput.render.table import alarm, figures
from mldiagnostics.goodput.report import as_json
from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.runs import goodput_over_time, last_values, step_times
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.text.timestamps import timestamp

from mldiagnostics_view.endpoints.bodies import Body, json_body
from mldiagnostics_view.limits import (
    GOODPUT_PARTS,
    MAX_LISTED_BYTES,
    MAX_REPORTS,
    PARALLEL_REPORTS,
    REFRESH_S,
    SETTLED_S,
)
from mldiagnostics_view.step_histogram import step_histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.model import TimeBreakdown
    from mldiagnostics.runs import RunRow


WINDOWS_S: Final = (3600.0, 86400.0)
_ACCOUNT: Final = ("elapsedSeconds", "productiveSeconds", "unproductiveSeconds", "goodput")

T = TypeVar("T")


class TimeReport(NamedTuple):
    """A computed report of one run."""

    body: Body
    """The whole report as JSON; `report` is null for a run without events of goodput."""
    account: dict[str, Any] | None
    """The partition of its time."""


class Reports:
    """The last reports of each run."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(PARALLEL_REPORTS)
        self._reports: OrderedDict[tuple[object, ...], TimeReport] = OrderedDict()
        self._step_times: OrderedDict[tuple[object, ...], Body] = OrderedDict()
        self._last_values: OrderedDict[tuple[object, ...], dict[str, float]] = OrderedDict()

    async def get(self, row: RunRow) -> TimeReport:
        """Return the report of a run.

        Raises:
            LogUnreadable: The files cannot be read.
        """
        return await self._kept(self._reports, row, _report)

    async def account(self, row: RunRow) -> dict[str, Any] | None:
        """Return the partition of a run's time for a list of runs; None without one.

        Runs with many records are left out, unless their report is there. Raises as `get` does.
        """
        if _key(row) not in self._reports and await asyncio.to_thread(_is_large, row):
            return None
        return (await self.get(row)).account

    async def step_times(self, row: RunRow) -> Body:
        """Return the distribution of the step times of a run. Raises as `get` does."""
        return await self._kept(self._step_times, row, _step_times)

    async def last_values(self, row: RunRow) -> dict[str, float]:
        """Return the last values of the metrics of a run. Raises `StoreError`."""
        return await self._kept(self._last_values, row, last_values)

    async def _kept(self, kept: OrderedDict[tuple[object, ...], T], row: RunRow, make: Callable[[RunRow], T]) -> T:
        key = _key(row)
        async with self._turns:
            if key not in kept:
                kept[key] = await asyncio.to_thread(make, row)
                if len(kept) > MAX_REPORTS:
                    kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key]


def cluster_report(account: Mapping[str, Any] | None, problem: str | None) -> dict[str, Any]:
    """Return the report of the account of an MLRun, and the problem of the files."""
    empty: dict[str, Any] = {"windows": [], "attempts": [], "disruptions": [], "hang": None, "steps": None}
    report = None if account is None else {"cumulative": account, **empty}
    return {"report": report, "overTime": None, "ofCluster": account is not None, "problem": problem}


def _key(row: RunRow) -> tuple[object, ...]:
    is_settled = row.phase in FINAL and time.time() - (row.ended or 0.0) > SETTLED_S
    moment = 0 if is_settled else int(asyncio.get_running_loop().time() / REFRESH_S)
    return row.directory, row.phase, row.attempt, row.heartbeat, row.ended, moment


def _is_large(row: RunRow) -> bool:
    return sum(file.size for file in record_files(row.directory).list()) > MAX_LISTED_BYTES


def _report(row: RunRow) -> TimeReport:
    read = goodput_over_time(row, parts=GOODPUT_PARTS, windows_s=WINDOWS_S)
    if read is None:
        return TimeReport(json_body(lambda: {"report": None, "overTime": None}), None)
    report, parts = read
    document: dict[str, Any] = {
        "report": as_json(report, old_keys=False),
        "overTime": _over_time(report, parts),
        "figures": [*figures(report)],
        "alarm": alarm(report),
    }
    account = {name: document["report"]["cumulative"][name] for name in _ACCOUNT}
    return TimeReport(json_body(lambda: document), account)


def _over_time(report: GoodputReport, parts: Sequence[TimeBreakdown]) -> dict[str, Any]:
    """Return the seconds of each cause in equal parts of the time."""
    causes = dict.fromkeys(cause for part in parts for cause in part.unproductive_s)
    return {
        "startTime": timestamp(report.cumulative.start),
        "endTime": timestamp(report.cumulative.end),
        "productiveSeconds": [part.productive_s for part in parts],
        "unproductiveSeconds": {cause: [part.unproductive_s.get(cause, 0.0) for part in parts] for cause in causes},
    }


def _step_times(row: RunRow) -> Body:
    return json_body(lambda: step_histogram(step_times(row)))
