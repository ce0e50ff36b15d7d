"""ml-goodput-measurement itself, queried about logs: run by its own Python, with JSON on standard input and output.

A question is `{"entries": [[logged, payload], …], "elastic": bool, "op": …, "window": […], "exclusions": […]}`; its
answer `{"goodput": …, "badput": …, "max_step": …, …}` or `{"error": name}`. Only jobs that ended have an answer that
does not depend on the time of the query.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import Any


class Reader:
    """A log of entries with the times at which they were logged."""

    def __init__(self, entries: list[Any]) -> None:
        self._rows = [(datetime.fromtimestamp(t, timezone.utc), n, payload) for n, (t, payload) in enumerate(entries)]

    def write_cloud_logging_entry(self, entry: object) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        pass

    def read_cloud_logging_entries(
        self, start_time: Any = None, end_time: Any = None, last_entry_info: Any = None
    ) -> tuple[list[Any], tuple[Any, Any]]:
        end = end_time or datetime.now(timezone.utc)
        start = start_time or end - timedelta(days=7)
        rows = [row for row in sorted(self._rows, key=lambda row: row[:2]) if row[0] <= end and row[0] > start]
        if last_entry_info and last_entry_info[0]:
            rows = [row for row in rows if (row[0], row[1]) > (last_entry_info[0], int(last_entry_info[1]))]
        return [dict(row[2]) for row in rows], (rows[-1][0], str(rows[-1][1])) if rows else (None, None)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Query the library as its users do."""
    library: Any = import_module("ml_goodput_measurement")
    elastic = library.goodput_elastic.ElasticGoodputCalculator
    kind = elastic if question["elastic"] else library.goodput.GoodputCalculator
    with tempfile.TemporaryDirectory() as cache:
        calculator = kind("case-job", "log", Reader(question["entries"]), cache_dir=cache)
        try:
            return query(calculator, question)
        except Exception as error:  # noqa: BLE001 - the exception is the answer
            return {"error": type(error).__name__}


def query(calculator: Any, question: dict[str, Any]) -> dict[str, Any]:
    """Return what a query returns, with names for its parts."""

    def utc(t: float) -> datetime:
        return datetime.fromtimestamp(t, timezone.utc)

    names: tuple[str, ...]
    if question["op"] == "interval":
        names = ("goodput", "badput", "max_step", "elapsed", "disruptions")
        values = calculator.get_job_goodput_interval(*map(utc, question["window"]))
    elif question["op"] == "exclusions":
        names = ("goodput", "badput", "max_step", "excluded")
        windows = [(utc(start), utc(end)) for start, end in question["exclusions"]]
        values = calculator.get_job_goodput_with_exclusions(windows, include_badput_breakdown=True)
    elif question["op"] == "deviation":
        return {"deviation": {str(step): value for step, value in calculator.get_step_deviation().items()}}
    elif question["op"] == "details":
        calculator.get_job_goodput(include_badput_breakdown=True)
        return dict(named(calculator.get_job_goodput_details()))
    else:
        names = ("goodput", "badput", "max_step")
        values = calculator.get_job_goodput(include_badput_breakdown=True)
    return {name: named(value) for name, value in zip(names, values, strict=False)}


def named(value: Any) -> Any:
    """Return names for enumerations, all the way down."""
    if isinstance(value, dict):
        return {getattr(key, "name", str(key)): named(item) for key, item in value.items()}
    return value


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        answers = [answer(question) for question in json.load(sys.stdin)]
    json.dump(answers, sys.stdout)
