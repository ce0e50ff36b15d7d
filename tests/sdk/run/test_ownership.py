"""One process leads a run, also if others inherit its environment."""

from __future__ import annotations

import os
import subprocess
import sys

from mldiagnostics.identity.environment import is_running, started
from mldiagnostics.run import ownership

CLAIM = "import os; from mldiagnostics.run.ownership import claim; print(claim('r', os.environ))"


def claimed_by_a_child(env: dict[str, str]) -> bool:
    command = [sys.executable, "-c", CLAIM]
    done = subprocess.run(command, env={**os.environ, **env}, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip() == "True"


def test_a_process_may_claim_again_and_again() -> None:
    env: dict[str, str] = {}
    assert ownership.claim("r", env)
    assert ownership.claim("r", env)
    assert ownership.claim("s", env)


def test_a_child_does_not_speak_for_the_run_of_its_living_parent() -> None:
    env: dict[str, str] = {}
    ownership.claim("r", env)
    assert not claimed_by_a_child(env)
    ownership.release("r", env)
    assert env == {}
    assert claimed_by_a_child(env)


def test_a_child_speaks_for_a_run_of_its_own() -> None:
    env: dict[str, str] = {}
    ownership.claim("another", env)
    assert claimed_by_a_child(env)


def test_the_dead_and_the_malformed_do_not_count() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        since = started(process.pid)
        assert is_running(process.pid, since)
        assert is_running(process.pid, "")
        assert not is_running(process.pid, f"{since}0"), "another process with the same number"
    assert not is_running(process.pid, since)
    for value in (f"r/{process.pid}/{since}", "r", "r/", "r/x/y", "/", "r/1"):
        env = {ownership.VARIABLE: value}
        assert ownership.claim("r", env) == (value != "r/1")


def test_only_the_owner_releases() -> None:
    env = {ownership.VARIABLE: "r/1/"}
    ownership.release("r", env)
    assert env
