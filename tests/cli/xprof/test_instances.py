"""Servers of XProf by the log directory that they show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mldiagnostics_cli.xprof.instances import XprofInstance, nearest, trimmed

SERVER = XprofInstance(name="a", on="kubernetes", log_directory="", state="Running", url="", created=None)


@pytest.mark.parametrize(
    ("directory", "server", "below"),
    [
        ("gs://bucket/runs/one", "gs://bucket/runs/one/", ""),
        ("gs://bucket/runs/two/", "gs://bucket/runs", "two/"),
        ("gs://bucket/runsother", "", ""),
        ("volume:///ml/trainer", "volume:///", "ml/trainer/"),
        ("gs://other/runs/one", "", ""),
    ],
)
def test_the_nearest_server_at_or_above_a_directory_shows_it(directory: str, server: str, below: str) -> None:
    roots = ("gs://bucket/runs/one/", "gs://bucket/runs", "volume:///")
    shown = nearest([replace(SERVER, log_directory=each) for each in roots], directory)
    assert (("", "") if shown is None else (shown[0].log_directory, shown[1])) == (server, below)


def test_a_server_that_runs_comes_first() -> None:
    idle = replace(SERVER, log_directory="gs://bucket/runs", state="Idle")
    running = replace(idle, log_directory="gs://bucket/runs/", state="Running")
    assert trimmed("volume:///") == "volume:///"
    assert nearest([idle, running], "gs://bucket/runs") == nearest([running, idle], "gs://bucket/runs") == (running, "")
