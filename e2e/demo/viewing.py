"""The web view of the runs of the demo."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.progress import ClusterError
from rich.console import Console

from demo.command_line import MLDIAG, shown

ANSWER_S = 30
ADDRESS = "http://127.0.0.1:8425/"


class View:
    """A server over a directory of runs; it starts while the caller does other work."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def check(self, run: str) -> None:
        """Raise ClusterError unless the server lists a run."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        address = re.search(r"http://\S+/", line)
        if address is None:
            raise ClusterError(f"mldiag view: has not started: {line}{self._process.stdout.read()}")
        try:
            with urllib.request.urlopen(f"{address[0]}api/runs", timeout=ANSWER_S) as response:
                listed = [each["key"] for each in json.load(response)["runs"]]
        except OSError as error:
            raise ClusterError(f"mldiag view: {address[0]} does not respond: {error}") from error
        if run not in listed:
            raise ClusterError(f"mldiag view: the run {run} is not listed")


@contextmanager
def view(runs: Path) -> Iterator[View]:
    """Serve a directory of runs, on a free port, while the block runs."""
    command = [str(MLDIAG), "view", str(runs), "--port=0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield View(process)
        finally:
            process.terminate()


def how_to_view(console: Console, runs: Path) -> None:
    """Print the command of the view, and its address."""
    console.print(f"To look at the runs in a browser, at {ADDRESS}, run:", highlight=False)
    console.print(f"  {MLDIAG.parent}/{shown(['view', str(runs)])}\n", style="bold", soft_wrap=True, highlight=False)
