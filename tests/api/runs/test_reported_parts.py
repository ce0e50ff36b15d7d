from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mldiagnostics_api.formats import moment
from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedRun, ReportedSession
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.reports.shown_configs import CONFIG_BYTES, ShownConfigs, shown_configs
from mldiagnostics_api.runs.conditions import profilable_verdict, reporting_verdict
from mldiagnostics_api.runs.reported_parts import (
    reported_hosts,
    reported_parts,
    step_time_text,
)
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSession

NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
SEEN = NOW.timestamp()
HOST = ReportedHost(
    rank=0, slice=None, name="h", pod="", pod_uid="", node="", attempt=0, incarnation="00000000", received=SEEN
)
RUN = ReportedRun(key=RunKey("ml", "r"), revision=1, first_received=SEEN, last_received=SEEN)


def status_of(run: ReportedRun, previous: MLRunStatus | None = None) -> MLRunStatus:
    before = previous or MLRunStatus()
    parts = before.model_copy(update=reported_parts(before, run)).model_dump(mode="json", by_alias=True)
    return MLRunStatus.model_validate(parts)


def shown(configs: dict[str, dict[str, Any]]) -> ShownConfigs:
    """Return configurations as a report brings them."""
    work = shown_configs(
        {name: {key: json.dumps(each).encode() for key, each in entries.items()} for name, entries in configs.items()}
    )
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: ShownConfigs = end.value
            return result


def test_secrets_of_the_configuration_never_reach_the_object_and_its_size_is_bounded() -> None:
    user = {
        "lr": 0.1,
        "db_password": "hunter2",
        "nested": {"api_token": "hunter2", "x": 1},
        "name": "Bearer hunter2abc",
    }
    many = {f"k{n:03}": "x" * 1000 for n in range(100)} | {"y" * 300: 1, "long": "z" * 2000}
    configs = status_of(
        replace(RUN, configs=shown({"user": user, "software": {"jax": "0.10"}, "hardware": many}))
    ).configs
    assert configs is not None
    text = configs.model_dump_json()
    assert "hunter2" not in text
    assert len(text) < 1.2 * CONFIG_BYTES
    assert configs.software == {"jax": "0.10"}
    assert configs.omitted
    (short,) = [status_of(replace(RUN, configs=shown({"user": user}))).configs]
    assert short is not None
    assert short.user is not None
    assert json.loads(short.user["lr"]) == 0.1
    assert (short.user["db_password"], json.loads(short.user["nested"])["x"], short.omitted) == ("<secret>", 1, None)


def test_numbers_that_json_cannot_write_are_left_out() -> None:
    status = status_of(
        replace(RUN, metrics={"loss": 2.5, "nan": math.nan, "none": None}, step=7, step_time_seconds=math.inf)
    )
    assert status.metrics == {"loss": 2.5}
    assert status.progress is not None
    assert (status.progress.step, status.progress.step_time) == (7, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.21, "210 ms"), (0.00123456, "1.23 ms"), (2.345, "2.35 s"), (90, "90 s"), (5400.4, "5400 s")],
)
def test_a_step_time_is_readable(seconds: float, text: str) -> None:
    assert step_time_text(seconds) == text


def test_the_goodput_is_a_percentage_with_its_causes() -> None:
    account = ReportedGoodput(
        as_of=SEEN,
        started=SEEN - 200,
        elapsed=200,
        productive=186.8,
        unproductive={"a": 13.2},
        disruptions=1,
        attempts=2,
    )
    goodput = status_of(replace(RUN, goodput=account)).goodput
    assert goodput is not None
    assert (goodput.summary, goodput.ratio, goodput.unproductive_seconds) == ("93.4%", 0.934, {"a": 13.2})
    assert status_of(RUN, MLRunStatus(goodput=goodput)).goodput == goodput


def test_a_report_changes_the_sessions_of_the_program_only() -> None:
    captured = RunSession(id="s1", source="Capture", capture="c", start_time=NOW)
    reported = [ReportedSession(id="s1"), *(ReportedSession(id=f"p{n}", start=SEEN + n) for n in range(40))]
    sessions = status_of(replace(RUN, sessions=reported), MLRunStatus(profile_sessions=[captured])).profile_sessions
    assert sessions is not None
    assert len(sessions) == 32
    assert sessions[-1].id == "p39"
    few = status_of(replace(RUN, sessions=reported[:2]), MLRunStatus(profile_sessions=[captured])).profile_sessions
    assert [session.source for session in few or ()] == ["Capture", "Program"]


def test_silent_failed_and_finished_processes_are_distinct() -> None:
    hosts = [
        HOST,
        replace(HOST, rank=1, received=SEEN - 31),
        replace(HOST, rank=2, phase="Failed", reason="OOM", received=SEEN - 31),
        replace(HOST, rank=3, phase="Completed", received=SEEN - 31),
    ]
    run = replace(RUN, hosts=hosts)
    counted = reported_hosts(run, NOW)
    assert counted.reporting == 2
    assert [(each.rank, each.reason) for each in counted.exceptions or ()] == [(2, "OOM"), (1, "Lost")]
    assert reporting_verdict(run, NOW, ended=False)[:2] == (True, "Reporting")
    assert reporting_verdict(replace(RUN, hosts=hosts[:2]), NOW + timedelta(60), ended=False)[:2] == (False, "Lost")
    assert profilable_verdict(run, NOW, ended=False)[:2] == (False, "NoProfilerServer")
    assert profilable_verdict(None, NOW, ended=False)[:2] == (None, "NotReported")


def test_times_that_do_not_exist_are_none() -> None:
    assert [moment(each) for each in (None, 1e300, math.nan, SEEN)] == [None, None, None, NOW]
