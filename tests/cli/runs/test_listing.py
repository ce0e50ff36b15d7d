from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import yaml
from mldiagnostics.errors import StoreForbidden
from mldiagnostics.runs import RunRow, list_runs
from mldiagnostics.runs.run_filter import RunFilter
from mldiagnostics.store import open_store
from mldiagnostics_cli.runs import file_runs
from support.run_files import put_run

if TYPE_CHECKING:
    import pytest
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine


def test_every_format_has_the_same_runs(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "old", name="train\x1b[2J", created=10.0, ended=20.0, progress={"step": 7, "stepTimeSeconds": 0.5})
    put_run(store, "new", created=100.0, phase="Failed", reason="ExitCode", runGroup="sweep")
    listed = [row.to_json() for row in list_runs(store.url())]
    assert mldiag.document("runs", "list") == listed
    assert yaml.safe_load("\n".join(mldiag.lines("runs", "list", "-o", "yaml"))) == listed
    assert mldiag.lines("runs", "list", "-o", "name") == ["new", "old"]
    heading, new, old = mldiag.lines("runs", "list")
    assert heading.split() == ["NAME", "RUN", "PHASE", "STEP", "STEP-TIME", "GOODPUT", "ELAPSED", "AGE"]
    assert "Failed (ExitCode)" in new
    assert old.startswith("train\\x1b[2J")
    assert old.split()[3:8] == ["7", "500", "ms", "-", "10s"]
    wide, *_ = mldiag.lines("runs", "list", "-o", "wide")
    assert wide.split()[:8] == heading.split()
    assert wide.split()[-1] == "DIRECTORY"


def test_a_narrow_terminal_leaves_columns_out_before_it_cuts_names(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "0123456789abcdef", name="sweep-7-learning-rate", phase="Failed", reason="WorkerExitCode")
    heading, row = mldiag.in_terminal("runs", "list", env={"COLUMNS": "80", "NO_COLOR": "1"}).splitlines()
    assert row.split()[0] == "sweep-7-learning-rate"
    assert "Failed (WorkerExitCode)" in row
    assert "ELAPSED" not in heading


def test_filters_choose_runs(mldiag: CommandLine, store: Store) -> None:
    now = time.time()
    put_run(store, "a", name="train-1", created=now - 100, runGroup="sweep")
    put_run(store, "b", name="train-2", created=now - 90_000, phase="Failed", runGroup="sweep")
    put_run(store, "c", name="eval", created=now - 50)

    def chosen(*options: str) -> list[str]:
        return mldiag.lines("runs", "list", "-o", "name", *options)

    assert chosen("--group", "sweep", "--since", "1h") == ["a"]
    assert chosen("--phase", "failed") == ["b"]
    assert chosen("--name", "train-*", "--limit", "1") == ["a"]
    assert mldiag.run("runs", "list", "--group", "other").err == "No runs in mldiagnostics match.\n"
    assert mldiag.document("runs", "list", "--group", "other") == []


def test_a_bucket_is_listed_like_a_directory(mldiag: CommandLine, gcs_bucket: str) -> None:
    put_run(open_store(f"gs://{gcs_bucket}/runs"), "abc")
    storage = {"MLDIAG_STORAGE": f"gs://{gcs_bucket}/runs"}
    assert mldiag.lines("runs", "list", "-o", "name", env=storage) == ["abc"]
    assert "does not exist" in mldiag.failure("runs", "list", "-s", f"gs://{gcs_bucket}-not/there")


def test_a_run_whose_records_cannot_be_read_is_listed_without_goodput(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(store, "good")
    put_run(store, "bad")

    def accounted(row: RunRow, **_: object) -> RunRow:
        if row.run_id == "bad":
            raise StoreForbidden("bad/records: cannot be listed; check its rights")
        return replace(row, goodput=0.5)

    monkeypatch.setattr(file_runs, "with_goodput", accounted)
    runs = file_runs.FileRuns(store.url())
    shown = {row.run_id: row.goodput for row in runs.accounted(runs.rows(RunFilter()))}
    assert shown == {"good": 0.5, "bad": None}
