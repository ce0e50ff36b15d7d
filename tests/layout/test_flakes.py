"""`make flakes` names the tests that were ever red, with their disturbances and the command that repeats them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.suite.disturbances import DISTURBANCES, SUPPORT, Disturbance, chosen, together
from support.suite.red_tests import Run, red_tests, report

ROOT = Path(__file__).parents[2]
NAMES = ["tests/test_a.py::test_a", "tests/test_a.py::test_b[x - y]", "tests/test_b.py::test_c"]
QUIET, ZONED = Disturbance("none", ""), Disturbance("zone", "", {"TESTS_TZ": "Europe/Dublin"}, ("nice", "-n", "19"))


def run(disturbance: Disturbance, *failures: str, seed: int = 7) -> Run:
    shown = [f"___ {name.rpartition('::')[2]} ___\n>   assert x\nE   assert 1 == 2\nE   more" for name in failures]
    lines = [*shown, *(f"FAILED {name} - asse..." for name in failures), f"{len(failures)} failed, 3 passed in 1.2s"]
    return Run(["pytest", "-q"], disturbance, seed, int(bool(failures)), "\n".join(lines))


def test_a_red_test_is_shown_with_its_disturbances_and_how_to_repeat_it() -> None:
    runs = [run(QUIET), run(ZONED, NAMES[0], seed=4), run(QUIET, NAMES[0], NAMES[2])]
    zoned = "env TESTS_TZ=Europe/Dublin nice -n 19 pytest -q --randomly-seed=4 --hypothesis-seed=4"
    assert report(runs) == [
        f"red in 2 of 3: {NAMES[0]} (zone, none)",
        "    assert 1 == 2",
        f"    repeat with: {zoned} {NAMES[0]}",
        f"red in 1 of 3: {NAMES[2]} (none)",
        "    assert 1 == 2",
        f"    repeat with: pytest -q --randomly-seed=7 --hypothesis-seed=7 {NAMES[2]}",
    ]
    assert report(runs[:1]) == ["no test was red in 1 runs"]


def test_a_run_that_ends_before_its_tests_is_red_and_one_without_tests_is_not() -> None:
    runs = [Run([], QUIET, 1, 4, "usage: pytest\nno such option"), Run([], QUIET, 1, 5, "no tests ran")]
    assert report(runs)[:2] == ["red in 1 of 2: pytest itself (none)", "    no such option"]


@given(st.lists(st.lists(st.sampled_from(NAMES[::2]), unique=True)))
def test_every_failure_of_every_run_is_reported(failures: list[list[str]]) -> None:
    red = red_tests([run(QUIET, *names) for names in failures])
    assert {name: len(runs) for name, runs in red.items()} == {
        name: count for name in NAMES if (count := sum(name in names for names in failures))
    }
    assert [len(runs) for runs in red.values()] == sorted((len(runs) for runs in red.values()), reverse=True)


ALL_BUT_LOAD = together([each for each in DISTURBANCES if each.name != "load"])


@pytest.mark.parametrize("disturbance", [*DISTURBANCES, ALL_BUT_LOAD], ids=lambda each: each.name)
def test_the_shown_command_is_the_command(disturbance: Disturbance) -> None:
    tests = ["printf", "%s", "tests/test_a.py::test_b[x y]"]
    assert shlex.split(disturbance.shown(tests)) == disturbance.command(tests)
    tried = subprocess.run(disturbance.command(["true"]), check=False, capture_output=True)
    if tried.returncode:
        pytest.skip(f"{disturbance.name}: {tried.stderr.decode()}")
    ended = subprocess.run(disturbance.command(tests), check=True, capture_output=True, text=True)
    assert ended.stdout == tests[-1]
    assert subprocess.run(disturbance.command(["sh", "-c", "exit 3"]), check=False).returncode == 3


def test_disturbances_are_chosen_by_name() -> None:
    assert chosen([]) == DISTURBANCES
    assert [each.name for each in chosen(["user", "load"])] == ["user", "load"]
    with pytest.raises(ValueError, match="quiet: not a disturbance; choose from none, load, "):
        chosen(["user+quiet"])


def test_disturbances_are_made_together_in_the_order_in_which_the_system_allows_them() -> None:
    [both] = chosen(["user+nice+Europe/Dublin+python3.13"])
    assert both.name == "nice+Europe/Dublin+user+python3.13"
    assert both.python == "3.13"
    assert both.command(["true"])[:6] == ["env", "TESTS_TZ=Europe/Dublin", "nice", "-n", "19", "unshare"]


def test_a_slow_disk_delays_the_changes_of_files_and_nothing_else(tmp_path: Path) -> None:
    program = (
        "import os, time\nwaits = []\ntime.sleep = waits.append\n"
        "open('a', 'w').close()\nos.rename('a', 'b')\nopen('b').close()\nwith open('b', 'a') as b: os.fsync(b)\n"
        "print(*waits)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT / "slow_disk")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0.005", "0.005", "0.005", "0.05"]


def test_a_failing_test_is_named(tmp_path: Path, plain_path: Path) -> None:
    failing = plain_path / "test_never.py"
    failing.write_text("def test_never():\n    assert 1 == 2\n")
    command = [sys.executable, "tests/flakes.py", "-n", "1", "--only", "none", f"--logs={tmp_path}", str(failing)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "red in 1 of 1: " in done.stdout
    assert "::test_never (none)\n    assert 1 == 2\n    repeat with: " in done.stdout
