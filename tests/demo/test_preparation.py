"""The preparation of the cluster's part: the steps that are left, and their display."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from cluster.bare import Bare
from cluster.durations import Expected
from cluster.progress import ClusterError
from cluster.tools import TOOLS
from demo import preparation, waiting
from demo.kubectl import eventually
from rich.console import Console

if TYPE_CHECKING:
    from pathlib import Path


class Recorded:
    """Work that has ended after some looks at it."""

    def __init__(self, lines: list[list[str]], failure: str = "") -> None:
        self._lines, self._failure = lines, failure

    def lines(self) -> list[str]:
        return self._lines.pop(0) if self._lines else []

    def finished(self) -> bool:
        if self._failure:
            raise ClusterError(self._failure)
        return len(self._lines) <= 1


@pytest.fixture(autouse=True)
def fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_CACHE", str(tmp_path))
    monkeypatch.setattr(waiting, "POLL_S", 0)


def test_steps_disappear_when_their_tools_exist() -> None:
    chosen = Bare()
    needed = preparation.needed_tools(chosen)
    assert [name for name in TOOLS if name in needed] == needed, "in the order of the table"
    assert {"kube-apiserver", "kubelet", "kubectl", "helm"} <= set(needed)
    tools, _ = preparation.preparing(chosen)
    assert len(tools) == len(set(tools)), "a build that makes several tools is one step"
    for name in needed:
        TOOLS[name].path.parent.mkdir(parents=True)
        TOOLS[name].path.touch()
    after, built = preparation.preparing(chosen)
    assert tools
    assert after == []
    assert sum("jax-training" in step.title for step in built) == 1


def test_programs_of_the_machine_are_installed_beside_the_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    _, beside = preparation.preparing(Bare())
    assert beside[0].title.startswith("Installing Debian packages containerd ")


def test_the_longest_work_decides_what_is_left() -> None:
    countdown = waiting.Countdown()
    tools, images = [Expected("Building a", 300), Expected("Building b", 60)], [Expected("Building an image", 200)]
    assert countdown.left_s([tools, images], 0) == 360
    assert countdown.left_s([tools, images], 100) == 260
    assert countdown.left_s([tools[1:], images], 170) == 60
    assert countdown.left_s([tools[1:], images], 200) == 30
    assert countdown.left_s([[], []], 210) == 0


def test_without_a_terminal_each_line_and_the_time_left_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(file=io.StringIO())
    work = Recorded([["Building a (about 4 min) ..."], ["  done in 3 min"]])
    waiting.wait(console, work, lambda: [[Expected("Building a", 180)]], [Expected("Starting", 120)])
    assert capsys.readouterr().err == ("  Building a (about 4 min) ...\n  (about 5 min left)\n    done in 3 min\n")


def test_in_a_terminal_a_bar_shows_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    work = Recorded([[f"Building {number} ..."] for number in range(3)])
    waiting.wait(Console(file=out, force_terminal=True, width=100), work, lambda: [[Expected("Building a", 240)]], [])
    assert "about 4 min left" in out.getvalue()
    assert "Building 2 ..." in out.getvalue()
    assert capsys.readouterr().err == ""


def test_a_failed_preparation_ends_the_wait_with_its_reason() -> None:
    with pytest.raises(ClusterError, match="no compiler"):
        waiting.wait(Console(file=io.StringIO()), Recorded([["x"]], "no compiler"), list, [])


def test_the_preparation_writes_a_log_and_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLUSTER", "minikube")
    with preparation.Preparation() as running:
        eventually(running.finished, "end of the preparation", deadline_s=120, pause_s=0.05)
        reasons = [line for line in running.lines() if "CLUSTER=minikube: unknown provider" in line]
        assert [line.partition(": ")[0] for line in reasons] == ["tools", "images"]
        assert running.lines() == []
    assert {log.parent for log in running.logs.values()} == {tmp_path}
    with preparation.Preparation() as running:
        pass
    with pytest.raises(ClusterError, match=r"status -15|status 143"):
        running.finished()
