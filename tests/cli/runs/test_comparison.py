from __future__ import annotations

import doctest
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.records import Record
from mldiagnostics_cli.runs import comparison
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine


def two_runs(store: Store) -> None:
    for number, run in enumerate(["abc", "def"]):
        user = {"lr": 0.1 * (number + 1), "model": {"layers": 2}}
        put_run(store, run, name=f"run-{number}", runGroup="sweep", created=1.0 + number, configs={"user": user})
        losses = [Record("metric", float(step), "loss", value=9.0 - step - number, step=step) for step in range(5)]
        put_records(store, run, "a0-r0-aaaaaaaa-00001", *losses)


def test_the_examples_hold() -> None:
    assert doctest.testmod(comparison).failed == 0


def test_runs_are_compared_side_by_side(mldiag: CommandLine, store: Store) -> None:
    two_runs(store)
    shown = mldiag.lines("runs", "compare", "abc", "run-1", "--metric", "loss")
    assert shown[0].split() == ["run-0", "abc", "run-1", "def"]
    assert [line.split() for line in shown if line.startswith("config ")] == [["config", "user.lr", "0.1", "0.2"]]
    assert ["last", "loss", "5", "4"] in [line.split() for line in shown]
    assert len([line for line in shown if line.startswith("loss: step 0 to 4")]) == 2
    assert len([line for line in shown if line.startswith("          9")]) == 2  # one scale


def test_runs_that_do_not_fit_a_terminal_are_in_further_tables(mldiag: CommandLine, store: Store) -> None:
    for number in range(5):
        labels = {"hostname": f"host-{number}", "process_index": "0"}
        put_run(store, f"{number}" * 12, name=f"sweep-of-learning-rates-{number}", created=1.0 + number)
        record = Record("metric", 1.0, "host_cpu_utilization", value=50.0 + number, labels=labels)
        put_records(store, f"{number}" * 12, "a0-r0-aaaaaaaa-00001", record)
    shown = mldiag.in_terminal("runs", "compare", *(f"{n}" * 12 for n in range(5)), env={"COLUMNS": "80"})
    assert max(map(len, shown.splitlines())) <= 80
    tables = [table.splitlines() for table in shown.strip("\n").split("\n\n")]
    assert [len(table) for table in tables] == [len(tables[0])] * len(tables)
    titles = [f"sweep-of…rates-{number} {number * 8}" for number in "01234"]
    assert " ".join(" ".join(table[0].split()) for table in tables) == " ".join(titles)
    last = [value for table in tables for value in table[-1].removeprefix("last host_cpu_utilization").split()]
    assert last == ["50", "51", "52", "53", "54"]


def test_json_has_the_runs_of_a_group(mldiag: CommandLine, store: Store) -> None:
    two_runs(store)
    document = mldiag.document("runs", "compare", "--group", "sweep")
    assert [run["runId"] for run in document["runs"]] == ["def", "abc"]
    assert document["configs"] == {"user.lr": [0.2, 0.1]}
    assert document["lastMetrics"] == {"loss": [4.0, 5.0]}


def test_fewer_than_two_runs_are_an_error(mldiag: CommandLine, store: Store) -> None:
    two_runs(store)
    assert mldiag.failure("runs", "compare", "abc", code=64).startswith("abc: pass two runs or more to compare")
    assert "not recorded by rank 0" in mldiag.failure("runs", "compare", "abc", "def", "-m", "los")
