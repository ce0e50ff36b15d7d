"""XProf on this machine, opened over HTTP by the link of `connect`."""

from __future__ import annotations

import gzip
import json
import os
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.store import open_store
from mldiagnostics_cli.xprof.local import has_profiles
from support.programs.command_line import CommandLine
from support.run_files import put_run
from support.time_limits import with_enough_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 120


@pytest.fixture
def mldiag(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line with a state of its own, beside a log directory."""
    open_store(str(tmp_path / "logs")).put("plugins/profile/slow/host-0.xplane.pb", b"")
    mldiag = CommandLine(tmp_path, env={"XDG_STATE_HOME": str(tmp_path / "state")})
    yield mldiag
    for server in mldiag.document("xprof", "list", "--on", "local"):
        mldiag.run("xprof", "delete", server["name"], "--on", "local", "--yes")


@pytest.mark.peers
def test_a_server_is_opened_listed_and_deleted(mldiag: CommandLine) -> None:
    [made] = mldiag.document("xprof", "create", "logs")
    assert (made["name"], made["logDirectory"]) == ("logs", str(mldiag.folder / "logs"))
    [link] = mldiag.lines("xprof", "connect", "logs", "--on", "local")
    assert link == made["url"]
    assert answer(f"{link}data/plugin/profile/runs") == ["slow"]
    again = mldiag.run("xprof", "create", "logs", "-o", "json")
    assert json.loads(again.out) == [made]
    assert again.err == "logs: is hosted already; `mldiag xprof create --new` makes another server.\n"
    ended = with_enough_time(
        lambda idle_s: mldiag.run("xprof", "create", "logs", "--new", "--idle-after", f"{idle_s:g}s", "-o", "json"),
        lambda ended: "has ended" not in ended.err,
    )
    assert ended.code == 0, ended.err
    [second] = json.loads(ended.out)
    assert second["name"] == "logs-2"
    deadline = time.monotonic() + DEADLINE_S
    while len(mldiag.document("xprof", "list", "--on", "local")) > 1:  # the second ends without traffic
        assert time.monotonic() < deadline
    assert mldiag.lines("xprof", "delete", "logs", "--on", "local", "--yes") == ["xprof logs deleted"]
    assert mldiag.document("xprof", "list", "--on", "local") == []
    with pytest.raises(OSError, match="refused"):
        answer(link)


@pytest.mark.peers
def test_a_server_is_made_found_and_deleted_by_the_name_of_a_run(mldiag: CommandLine) -> None:
    runs = open_store(str(mldiag.folder / "runs"))
    put_run(runs, "4f6c", name="trainer")
    runs.put("4f6c/plugins/profile/slow/host-0.xplane.pb", b"")
    [made] = mldiag.document("xprof", "create", "trainer", "--storage", "runs")
    assert made["logDirectory"] == str(mldiag.folder / "runs/4f6c")
    variable = {"MLDIAG_STORAGE": "runs"}
    [link] = mldiag.lines("xprof", "connect", "trainer", "--on", "local", env=variable)
    assert answer(f"{link}data/plugin/profile/runs") == ["slow"]
    assert "no server of XProf" in mldiag.failure("xprof", "connect", "other", "--on", "local", "--storage", "runs")
    deleted = mldiag.lines("xprof", "delete", "trainer", "--on", "local", "--yes", env=variable)
    assert deleted == [f"xprof {made['name']} deleted"]


def test_a_directory_without_profiles_is_noticed(tmp_path: Path) -> None:
    open_store(str(tmp_path)).put("runs/ml/trainer/plugins/profile/slow/capture.json", b"{}")
    shown = ("runs", "runs/ml", "runs/ml/trainer")
    assert not any(has_profiles(str(tmp_path / each)) for each in shown)
    open_store(str(tmp_path)).put("runs/ml/trainer/plugins/profile/slow/host-0.xplane.pb", b"")
    assert all(has_profiles(str(tmp_path / each)) for each in shown)
    assert has_profiles("gs://bucket/runs")
    assert not has_profiles(str(tmp_path / "runs/ml/trainer/plugins"))


def test_mistakes_have_a_remedy_and_leave_nothing(mldiag: CommandLine) -> None:
    assert "nowhere: no such directory" in mldiag.failure("xprof", "create", "nowhere")
    message = mldiag.failure("xprof", "connect", "logs", "--on", "local")
    assert "no server of XProf has this name or log directory; `mldiag xprof create` makes one" in message
    assert mldiag.run("xprof", "list", "--on", "local").err == "No servers of XProf; `mldiag xprof create` makes one.\n"


def test_the_record_of_another_process_is_removed(mldiag: CommandLine) -> None:
    record = mldiag.folder / "state/mldiagnostics/xprof/old.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"logDirectory": "/logs", "port": 1, "pid": os.getpid(), "created": 1.0}))
    assert mldiag.document("xprof", "list", "--on", "local") == []
    assert not record.exists()


def answer(url: str) -> Any:
    """Return a decoded answer, which XProf compresses."""
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as response:
        body: bytes = response.read()
    return json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)
