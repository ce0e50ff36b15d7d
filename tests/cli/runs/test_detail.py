from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml
from mldiagnostics.errors import MissingExtraError
from mldiagnostics.pipeline.records import Record
from mldiagnostics_cli.output import MAX_LEVELS
from mldiagnostics_cli.runs import file_runs
from mldiagnostics_cli.runs.file_runs import FileRuns
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    import pytest
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine


def recorded_run(store: Store) -> None:
    put_run(
        store,
        "abc",
        name="trainer",
        phase="Active",
        attempt=1,
        worldSize=2,
        configs={"user": {"lr": 0.1}},
        attempts=[{"attempt": 0, "started": 1.0, "ended": 2.0, "phase": "Failed", "reason": "ExitCode"}],
    )
    phase = Record("phase", 1.0, "Active", attempt=1, payload={"host": "h0"})
    losses = [Record("metric", float(step), "loss", value=9.0 - step, step=step, attempt=1) for step in range(10)]
    put_records(store, "abc", "a1-r0-aaaaaaaa-00001", phase, *losses)
    failed = {"host": "h1", "reason": "ExitCode", "message": "exit 3"}
    put_records(store, "abc", "a1-r1-bbbbbbbb-00001", Record("phase", 2.0, "Failed", rank=1, attempt=1, payload=failed))
    store.put("abc/plugins/profile/a1-s5/h0.xplane.pb", b"12345")


def test_a_run_is_shown_with_its_attempts_profiles_hosts_and_curves(mldiag: CommandLine, store: Store) -> None:
    recorded_run(store)
    shown = mldiag.lines("runs", "get", "trainer", "--hosts", "--metric", "loss")
    assert "phase       Failed (WorkerExitCode)" in shown
    assert "message     rank 1 on h1: exit 3" in shown
    assert [line.split()[:2] for line in shown if line.endswith("ExitCode)")][-1:] == [["phase", "Failed"]]
    assert any(line.split()[:4] == ["a1-s5", "profile", "1", "5"] for line in shown)
    assert any(line.split()[:4] == ["1", "h1", "Failed", "(ExitCode)"] for line in shown)
    assert "loss: step 0 to 9, last 0, rank 0" in shown
    assert any(line.startswith("          9 █") for line in shown)


def test_a_narrow_terminal_shows_when_attempts_started_and_how_long_they_lasted(
    mldiag: CommandLine, store: Store
) -> None:
    recorded_run(store)
    shown = mldiag.in_terminal("runs", "get", "abc", env={"COLUMNS": "80", "NO_COLOR": "1"})
    [first] = [line for line in shown.splitlines() if line.split()[:1] == ["0"]]
    assert first.split()[1:6] == ["1970-01-01", "00:00:01", "UTC", "1", "s"]


def test_json_has_all_of_a_run(mldiag: CommandLine, store: Store) -> None:
    recorded_run(store)
    document = mldiag.document("runs", "get", "abc", "--hosts", "-m", "loss")
    assert document["configs"]["user"] == {"lr": 0.1}
    assert [attempt["reason"] for attempt in document["attempts"]] == ["ExitCode", "WorkerExitCode"]
    assert [profile["hosts"] for profile in document["profiles"]] == [["h0"]]
    assert [rank["host"] for rank in document["ranks"]] == ["h0", "h1"]
    assert document["series"][0]["value"] == [9.0 - step for step in range(10)]


def test_a_metric_that_was_not_recorded_names_those_that_were(mldiag: CommandLine, store: Store) -> None:
    recorded_run(store)
    message = mldiag.failure("runs", "get", "abc", "--metric", "los")
    assert message == "--metric los: rank 0 has not recorded it; its metrics are: loss"


def test_values_that_documents_cannot_hold_are_named_or_cut(mldiag: CommandLine, store: Store) -> None:
    nested = json.loads('{"a":' * 900 + "1" + "}" * 900)
    identity = {"workload": {"kind": "Job", "name": "a", "namespace": float("inf")}}
    put_run(store, "abc", configs={"user": {"rate": float("nan"), "deep": nested}}, identity=identity)
    user = mldiag.document("runs", "get", "abc")["configs"]["user"]
    assert user["rate"] == "NaN"
    assert 30 < json.dumps(user["deep"]).count("a") < MAX_LEVELS
    assert yaml.safe_load("\n".join(mldiag.lines("runs", "get", "abc", "-o", "yaml")))["configs"]["user"] == user


def test_a_time_that_no_calendar_has_is_unknown(mldiag: CommandLine, store: Store) -> None:
    attempts = [{"attempt": 0, "started": 1e20, "ended": 2e20, "phase": "Failed"}]
    put_run(store, "abc", created=1e20, ended=1e20, attempt=1, attempts=attempts)
    note = Record("event", 1e300, "note", payload={"message": "hello"}, rank=0, attempt=0)
    put_records(store, "abc", "a0-r0-00000000-00001", note)
    shown = mldiag.lines("runs", "get", "abc", "--texts")
    assert any(line.split()[:2] == ["started", "-,"] for line in shown)
    assert any(line.split()[:1] + line.split()[-1:] == ["-", "hello"] for line in shown)


def test_a_run_whose_account_needs_a_missing_extra_is_shown_without_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: object, **__: object) -> None:
        raise MissingExtraError(extra="s3", needed_for="s3://runs")

    put_run(store, "abc")
    source = FileRuns(store.url())
    row = source.find("abc")
    monkeypatch.setattr(file_runs, "with_goodput", reject)
    assert source.accounted([row]) == [row]
