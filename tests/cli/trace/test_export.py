"""`mldiag trace` over logs and the run of a real program."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.runs import list_runs
from mldiagnostics.store import open_store
from support.programs.command_line import CommandLine
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

# A step that ends in the microsecond of its start has no length, and no event.
PROGRAM = """
    import time

    import mldiagnostics
    from mldiagnostics import machinelearning_run, metrics

    with machinelearning_run("trainer") as run:
        for step in range(20):
            run.step(step)
            metrics.record("loss", 1 / (step + 1), step=step)
            time.sleep(0.001)
"""
LINES = """2026-11-21T10:00:00Z INFO started
2026-11-21T10:00:01Z ERROR failed
torn {
"""


@pytest.fixture(scope="module")
def mldiag(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line beside a run of a program, with a capture."""
    folder = tmp_path_factory.mktemp("runs")
    programs = Programs(folder, env={"MLDIAG_SINKS": "jsonl:"})
    ended = programs.run(PROGRAM)
    assert ended.code == 0, ended.err
    [row] = list_runs(programs.storage)
    window = {"start": "2026-11-21T10:00:00Z", "stop": "2026-11-21T10:00:02Z"}
    record = {"targets": [{"pod": "trainer-0", **window}, {"pod": "trainer-1", "start": None}]}
    store = open_store(row.directory)
    store.put("plugins/profile/slow/capture.json", json.dumps(record).encode())
    store.put("plugins/profile/slow/trainer-0.xplane.pb", b"trace")
    store.put("plugins/profile/own/trainer-0.xplane.pb", b"trace")
    return CommandLine(folder, env={"MLDIAG_STORAGE": programs.storage, "ML_GOODPUT_CACHE_DIR": str(folder)})


def opened(file: Path) -> tuple[list[dict[str, Any]], dict[int, str], dict[tuple[int, int], str]]:
    """Return the events of a trace, and the names of its processes and threads."""
    content = file.read_bytes()
    events = json.loads(gzip.decompress(content) if file.suffix == ".gz" else content)["traceEvents"]
    names = [event for event in events if event["ph"] == "M" and event["args"]]
    processes = {each["pid"]: each["args"]["name"] for each in names if each["name"] == "process_name"}
    threads = {(each["pid"], each["tid"]): each["args"]["name"] for each in names if each["name"] == "thread_name"}
    return [event for event in events if event["ph"] != "M"], processes, threads


def test_a_run_has_tracks_of_its_time_profiles_and_metrics(mldiag: CommandLine) -> None:
    [summary] = mldiag.document("trace", "trainer", "--out", "run.json")
    events, processes, threads = opened(mldiag.folder / "run.json")
    assert summary["events"] == len(events)
    assert summary["tracks"] == len(threads)
    kinds = Counter((processes[each["pid"]], each["ph"]) for each in events)
    assert kinds["trainer: rank 0", "C"] >= 20
    losses = [each["args"]["value"] for each in events if each["name"] == "loss"]
    assert losses == [1 / (step + 1) for step in range(20)]
    time = [each for each in events if threads.get((each["pid"], each.get("tid", 0))) == "time"]
    assert {each["ph"] for each in time} == {"X"}
    assert all(a["ts"] + a["dur"] == b["ts"] for a, b in itertools.pairwise(time))
    assert sum(each["name"].startswith("step ") for each in events) >= 19
    [capture] = [each for each in events if each["name"] == "slow"]
    assert (capture["ts"], capture["dur"]) == (1795255200_000_000, 2_000_000)
    assert threads[capture["pid"], capture["tid"]] == "trainer-0"
    assert sum(each["name"] == "own stored" for each in events) == 1


def test_logs_and_runs_share_a_trace_and_corrupt_lines_are_named(mldiag: CommandLine) -> None:
    (mldiag.folder / "a.log").write_text("torn [\n" + LINES)
    shown = mldiag.run("trace", "a.log", "trainer", "--severity", "ERROR")
    assert shown.code == 0, shown.err
    assert shown.out.splitlines()[1].split()[0] == "a.log.trace.json.gz"
    assert "a.log: parts that cannot be read: 1; the first: line 1 has no time" in shown.err
    events, processes, _ = opened(mldiag.folder / "a.log.trace.json.gz")
    assert "trainer: goodput" in processes.values()
    [error] = [each for each in events if processes[each["pid"]] == "a.log"]
    assert (error["name"], error["cat"]) == ("ERROR failed", "ERROR")
    assert error["args"]["message"] == "ERROR failed\ntorn {"


def test_a_directory_and_standard_input_are_logs_too(mldiag: CommandLine) -> None:
    folder = mldiag.folder / "logs/deep"
    folder.mkdir(parents=True)
    for name in ("b.log", "c.txt", "image.png"):
        (folder / name).write_text(LINES)
    mldiag.lines("trace", "logs", "--out", "b.json", "--start", "2026-11-21T10:00:01Z")
    events, processes, _ = opened(mldiag.folder / "b.json")
    assert [processes[each["pid"]] for each in events] == ["b.log", "c.txt"]
    printed = json.loads(mldiag.run("trace", "logs/deep/b.log", "--out", "-").out)
    assert len(printed["traceEvents"]) == 5  # with two names and the end


def test_a_pipe_and_the_target_of_a_link_are_written_not_replaced(mldiag: CommandLine) -> None:
    folder = mldiag.folder / "special"
    folder.mkdir()
    (folder / "b.log").write_text(LINES)
    os.mkfifo(folder / "pipe")
    command = [mldiag.script, "trace", folder / "b.log", "--out", folder / "pipe"]
    with subprocess.Popen(command, env=mldiag.environment(), stdout=subprocess.DEVNULL) as writer:
        piped = opened(folder / "pipe")
        assert writer.wait(120) == 0
    assert (folder / "pipe").is_fifo()
    (folder / "link").symlink_to("target.json")
    mldiag.lines("trace", "special/b.log", "--out", "special/link")
    assert (folder / "link").is_symlink()
    assert opened(folder / "target.json") == piped
    (folder / "full").symlink_to("/dev/full")
    assert "special/full: cannot be written: No space left on device; free some space or pass" in mldiag.failure(
        "trace", "special/b.log", "--out", "special/full"
    )


def test_pods_of_a_job_are_sorted_by_slice_and_worker(mldiag: CommandLine) -> None:
    pods = [f"trainer-workers-{place}-x7k2p" for place in ("1-0", "0-10", "0-2")] + ["controller"]
    lines = [json.dumps({"time": f"2026-11-21T10:00:0{at}Z", "pod": pod, "msg": "up"}) for at, pod in enumerate(pods)]
    (mldiag.folder / "pods.jsonl").write_text("\n".join(lines))
    printed = json.loads(mldiag.run("trace", "pods.jsonl", "--out", "-").out)["traceEvents"]
    order = {each["pid"]: each["args"]["sort_index"] for each in printed if each["name"] == "process_sort_index"}
    titles = {each["pid"]: each["args"]["name"] for each in printed if each["name"] == "process_name"}
    assert [titles[pid] for pid in sorted(titles, key=lambda pid: order.get(pid, 0))] == [
        "slice 0 worker 2 (trainer-workers-0-2-x7k2p)",
        "slice 0 worker 10 (trainer-workers-0-10-x7k2p)",
        "slice 1 worker 0 (trainer-workers-1-0-x7k2p)",
        "controller",
    ]


def test_excluded_entries_are_left_out(mldiag: CommandLine) -> None:
    (mldiag.folder / "noise.log").write_text(LINES)
    for patterns, shown in (
        (("-x", "^INFO"), ["ERROR failed"]),
        (("-x", "nothing", "--exclude", "fail"), ["INFO started"]),
    ):
        printed = json.loads(mldiag.run("trace", "noise.log", "--out", "-", *patterns).out)["traceEvents"]
        assert [each["name"] for each in printed if each["ph"] == "i"] == shown
    assert "(: not a regular expression" in mldiag.failure("trace", "noise.log", "-x", "(", code=64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.jsonl",), "a.jsonl: no such file; pass the path of a log, a run, or -"),
        (("nope",), "no run in"),
        (("empty",), "empty: has no logs"),
        (("junk.bin",), "not written: no entry of the sources is shown; 1 part cannot be read"),
        (("dated.log", "--job", "trainer"), "not written: no entry of the sources is shown; check the filters"),
    ],
)
def test_without_an_entry_no_file_is_made(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    mldiag = CommandLine(tmp_path)
    (tmp_path / "mldiagnostics").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "junk.bin").write_bytes(b"\x00\xff junk")
    (tmp_path / "dated.log").write_text(LINES)
    before = sorted(tmp_path.iterdir())
    assert message in mldiag.failure("trace", *arguments)
    assert sorted(tmp_path.iterdir()) == before
