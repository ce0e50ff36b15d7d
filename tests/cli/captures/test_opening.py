"""`mldiag capture --open` with the unmodified XProf, and a browser that writes down what it opens."""

from __future__ import annotations

import gzip
import json
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from support.programs.command_line import CommandLine
from support.servers.profiler_process import profiler_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def mldiag(tmp_path: Path, opener: str) -> Iterator[CommandLine]:
    """The command line with a state and a browser of its own."""
    mldiag = CommandLine(tmp_path, env={"XDG_STATE_HOME": str(tmp_path / "state"), "BROWSER": opener})
    yield mldiag
    for server in mldiag.document("xprof", "list", "--on", "local"):
        mldiag.run("xprof", "delete", server["name"], "--on", "local", "--yes")


@pytest.mark.peers
def test_a_capture_is_opened_in_one_server_for_its_directory(mldiag: CommandLine) -> None:
    with profiler_process() as server:
        for session in ("first", "second"):
            options = ["-d", "10ms", "--session", session, "--open", "-o", "name"]
            ended = mldiag.run("capture", f"127.0.0.1:{server.port}", *options)
            assert ended.code == 0, ended.err
            assert ended.out.endswith(f"{session}/127.0.0.1_{server.port}.xplane.pb\n")
    first, second = (mldiag.folder / "opened").read_text().splitlines()
    assert urlsplit(first).netloc == urlsplit(second).netloc
    assert urlsplit(second).query == "run=second&tag=overview_page"
    assert b"<html" in read(second).lower()
    assert {"first", "second"} <= set(json.loads(read(f"http://{urlsplit(second).netloc}/data/plugin/profile/runs")))


def read(url: str) -> bytes:
    """Return the body of an answer, which XProf always compresses."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return gzip.decompress(answer.read())


def test_nothing_is_opened_that_is_not_followed_to_its_end(mldiag: CommandLine) -> None:
    assert "--open and --every: both are given" in mldiag.failure("capture", "a:1", "--open", "--every", "1s", code=64)
    assert "--open and --detach: both are given" in mldiag.failure("capture", "run", "--open", "--detach", code=64)
