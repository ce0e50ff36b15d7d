"""A fleet that reports to one table: `python -m bench.fleet_replay RUNS ROUNDS`; it prints its figures as JSON.

The reports take the way of the endpoint, without its network: parsed in slices, applied, persisted by the journal on
the local disk. Statuses are decided as the reconciler decides them. The clock of the reports is the fleet's.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson
from mldiagnostics.capture.budget import memory_limit
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.runs.status import is_worth_writing
from mldiagnostics_operator.control_plane.http import bodies
from mldiagnostics_operator.control_plane.http.intake import extras_of
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.journal.journal import Journal
from mldiagnostics_operator.control_plane.memory.budget import ReportBudget
from mldiagnostics_operator.control_plane.memory.table import ReportTable, TableFull
from mldiagnostics_operator.control_plane.slices import finished, sliced
from mldiagnostics_operator.runs.run import Run, run_manifest
from mldiagnostics_operator.runs.status.next_status import RunInputs, next_status
from mldiagnostics_operator.storage import Storage

from bench.process_usage import peak_rss_mib

NAMESPACES: Final = 10
HOSTS: Final = 2
STEP_S: Final = 1
START: Final = 1_790_000_000
LIMIT: Final = memory_limit(Policy().max_trace_bytes)
METRICS: Final = {f"metric/{number}": 1.0 / (number + 1) for number in range(10)}
CONFIGS: Final = {"hardware": {"accelerator": "h100", "chips": 8}, "user": {f"option_{n}": n for n in range(20)}}


def document(*, name: str, incarnation: str, host: int, sequence: int, now: float, step: int) -> dict[str, Any]:
    """Return the report of a host, which leads if it is the first, without its events."""
    report: dict[str, Any] = {
        "v": 1,
        "incarnation": incarnation,
        "sequence": sequence,
        "sent": now,
        "rank": host,
        "worldSize": HOSTS,
        "host": {"name": f"trainer-{name}-{host}"},
        "profiler": {"ports": [9999], "server": "jax", "version": "0.10.2", "tensorflow": False},
        "progress": {"step": step, "stepTimeSeconds": STEP_S, "changed": now},
        "metrics": METRICS,
    }
    if host == 0:
        report |= {"run": {"name": f"run-{name}"}} | ({"configs": CONFIGS} if sequence == 1 else {})
    return report


class Fleet:
    """Runs of two hosts with a step each second."""

    def __init__(self, runs: int, namespaces: int = NAMESPACES) -> None:
        self.table = ReportTable(ReportBudget(LIMIT))
        self.keys = [RunKey(f"team-{number % namespaces}", f"{number:064x}") for number in range(runs)]
        self.refused = self.reports = 0
        self.cpu_s = 0.0

    def report(self, number: int, host: int, sequence: int, now: int) -> int:
        """Send one report of a host; return the seconds to its next one."""
        key = self.keys[number]
        incarnation = f"{number * HOSTS + host:08x}"
        steps = range((sequence - 1) * 10, sequence * 10)
        report = document(
            name=str(number), incarnation=incarnation, host=host, sequence=sequence, now=now, step=steps[-1]
        )
        if host == 0:
            known = self.table.known_events(key, incarnation)
            events = [
                Event(moment, code, step)
                for step in steps
                for moment, code in (
                    ((START + step) * 1_000_000, EventCode.STEP_START),
                    ((START + step) * 1_000_000 + 990_000, EventCode.STEP_END),
                )
            ]
            report |= {"events": {"first": known, "items": packing.pack(events)}}
        text = orjson.dumps(report)
        sender = Sender(key.namespace, "default", f"trainer-{number}-{host}", f"uid-{number}-{host}", "node-0")
        start = time.process_time()
        self.reports += 1
        try:
            body = bodies.parse(text)
            self.table.require_room(key, body.report)
            extras = finished(extras_of(self.table, key, body))
            self.table.apply(key, body.report, sender, now, extras)
        except TableFull:
            self.refused += 1
        self.cpu_s += time.process_time() - start
        return self.table.answer(key, incarnation).interval_seconds


def runs_until_refused(namespaces: int) -> int:
    """Return how many runs report until the first one is refused."""
    fleet = Fleet(100_000, namespaces)
    for number in range(len(fleet.keys)):
        for host in range(HOSTS):
            fleet.report(number, host, 1, START)
        if fleet.refused:
            return number
    return len(fleet.keys)


async def replay(runs: int, rounds: int) -> dict[str, Any]:
    """Let all hosts report `rounds` times, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        fleet, now, interval_s = Fleet(runs), START, 10
        storage = Storage(Path(folder))
        journal = Journal(fleet.table, storage, Location.parse("volume:///runs"), interval_s=0.0)
        writing = asyncio.create_task(journal.run())
        objects = [_object(key) for key in fleet.keys]
        decided = written = 0
        decision_cpu_s = 0.0
        for sequence in range(1, rounds + 1):
            for number, run in enumerate(objects):
                for host in range(HOSTS):
                    interval_s = fleet.report(number, host, sequence, now)
                start = time.process_time()
                inputs = RunInputs(facts=run.facts(fleet.table.view(run.report_key)))
                status, run.signals = next_status(run.status, inputs, datetime.fromtimestamp(now, UTC))
                decision_cpu_s += time.process_time() - start
                decided += 1
                written += is_worth_writing(run.status, status)
                run.status = status
                if number % 10 == 0:
                    await asyncio.sleep(0)  # the journal goes on
            await sliced(fleet.table.count_reporting(now))
            now += interval_s
        while fleet.table.unpersisted():  # noqa: ASYNC110 - writes take turns
            await asyncio.sleep(0.1)
        peak_mib, charged = peak_rss_mib(os.getpid()), fleet.table.budget
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        storage.close()
        return {
            "runs": runs,
            "reports": fleet.reports,
            "refused": fleet.refused,
            "interval_s": interval_s,
            "simulated_s": now - START,
            "report_cpu_ms": 1000 * fleet.cpu_s / fleet.reports,
            "decision_cpu_ms": 1000 * decision_cpu_s / decided,
            "writes": written,
            "peak_mib": peak_mib,
            "limit_mib": LIMIT / 2**20,
            "charged_mib": (charged.state.used + charged.events.used) / 2**20,
        }


def _object(key: RunKey) -> Run:
    body = run_manifest(f"r-{key.run_id[:16]}", key.namespace, key.run_id)
    body["metadata"] |= {"uid": key.run_id[:36], "resourceVersion": "1"}
    return Run.of(body)


if __name__ == "__main__":
    if sys.argv[1] == "until-refused":
        print(json.dumps(runs_until_refused(int(sys.argv[2]))))
    else:
        print(json.dumps(asyncio.run(replay(*map(int, sys.argv[1:])))))
