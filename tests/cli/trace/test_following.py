"""A trace that is written again while the entries of Cloud Logging come, with a gcloud that filters as the real one."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.commands.source_options import SourceChoice
from mldiagnostics_cli.trace import following
from mldiagnostics_cli.trace.cloud_logging import JobLogs
from mldiagnostics_cli.trace.export import TraceOptions
from mldiagnostics_cli.trace.following import follow_trace
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 60
GCLOUD = """#!{python}
import fcntl, json, os, re, sys
folder = {folder!r}
wanted = sys.argv[3]
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(wanted + "\\n")
if os.path.exists(os.path.join(folder, "broken")):
    open(os.path.join(folder, "failed"), "w").close()
    sys.exit("ERROR: (gcloud.logging.read) UNAVAILABLE: try again")
[since], [until] = (re.findall(f'receiveTimestamp{{sign}}"(.+?)"', wanted) for sign in (">=", "<"))
with open(os.path.join(folder, "entries")) as lines:
    fcntl.flock(lines, fcntl.LOCK_SH)
    entries = [json.loads(line) for line in lines]
print(json.dumps([each for each in entries if since <= each["receiveTimestamp"] < until]))
"""


class Cloud:
    """Cloud Logging of a project: entries in a file, which the gcloud reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "entries").touch()
        program = folder / "bin/gcloud"
        program.parent.mkdir()
        program.write_text(GCLOUD.format(python=sys.executable, folder=str(folder)))
        program.chmod(0o755)

    def receive(self, message: str) -> None:
        """Add an entry of the job; none is read between its time and its line."""
        labels = {"pod_name": "trainer-w-0-0-x7k2p", "container_name": "train"}
        with (self._folder / "entries").open("a") as lines:
            fcntl.flock(lines, fcntl.LOCK_EX)
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
            entry = {"timestamp": now, "receiveTimestamp": now, "textPayload": message, "resource": {"labels": labels}}
            lines.write(json.dumps(entry) + "\n")

    def break_down(self) -> None:
        (self._folder / "broken").touch()

    def recover(self) -> None:
        (self._folder / "broken").unlink()

    def has_failed(self) -> bool:
        return (self._folder / "failed").exists()

    def calls(self) -> list[str]:
        path = self._folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    monkeypatch.setattr(following, "EVERY_S", 0.01)
    monkeypatch.setattr(following, "LATE_US", 0)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    return Cloud(tmp_path)


def follow(out: Path, *, end: int | None = None) -> None:
    now = time.time_ns() // 1000
    logs = JobLogs(project="my-project", job="trainer", start=now - 10**6, end=end)
    options = TraceOptions(job="trainer", end=end)
    follow_trace(SourceChoice(), [], logs, options, out=str(out), output=OutputFormat.TABLE)


def follow_until_it_fails(out: Path) -> None:
    with suppress(MLDiagnosticsError):
        follow(out)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def messages(out: Path) -> list[str]:
    if not out.exists():
        return []
    return [each["name"] for each in json.loads(out.read_text())["traceEvents"] if each["ph"] == "i"]


def test_entries_that_come_later_are_in_the_trace_once(
    cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "live.json"
    follower = threading.Thread(target=follow_until_it_fails, args=(out,), daemon=True)
    follower.start()
    until(lambda: bool(cloud.calls()))
    assert not out.exists()
    cloud.receive("loading")
    until(lambda: messages(out) == ["loading"])
    cloud.break_down()
    until(cloud.has_failed)
    cloud.receive("training")
    cloud.recover()
    until(lambda: messages(out) == ["loading", "training"])
    out.unlink()
    out.mkdir()  # the next writing fails, which ends it
    cloud.receive("more")
    follower.join(LIMIT_S)
    assert not follower.is_alive()
    notes = capsys.readouterr().err
    assert "no entry yet; waiting" in notes
    assert "UNAVAILABLE: try again" in notes
    assert "trying again" in notes


def test_following_ends_after_the_wanted_time(cloud: Cloud, tmp_path: Path) -> None:
    cloud.receive("loading")
    follow(tmp_path / "live.json", end=time.time_ns() // 1000)
    assert len(cloud.calls()) == 1
    assert "timestamp<" in cloud.calls()[0]


def test_the_first_reading_must_succeed(cloud: Cloud, tmp_path: Path) -> None:
    cloud.break_down()
    with pytest.raises(MLDiagnosticsError, match="UNAVAILABLE"):
        follow(tmp_path / "live.json")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument 'SOURCE...'"),
        (("--project", "p"), "name it with --job"),
        (("-", "--follow"), "pass files instead of -"),
        (("a.log", "--follow", "--out", "-"), "pass files instead of -"),
    ],
)
def test_options_that_cannot_be_met_are_refused(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    ended = CommandLine(tmp_path).run("trace", *arguments)
    assert ended.code == 64
    assert words in ended.err


def test_logs_of_a_job_are_read_once_without_following(cloud: Cloud, tmp_path: Path) -> None:
    (tmp_path / "bin/gcloud").write_text(f"#!{sys.executable}\nprint(open({str(tmp_path / 'entries')!r}).read())\n")
    cloud.receive("loading")
    mldiag = CommandLine(tmp_path, env={"PATH": os.environ["PATH"]})
    document = mldiag.document("trace", "--project", "my-project", "--job", "trainer")
    assert (document[0]["file"], document[0]["events"]) == ("trainer.trace.json.gz", 1)
