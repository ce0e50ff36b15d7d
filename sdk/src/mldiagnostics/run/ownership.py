"""Which process speaks for a run where subprocesses inherit its identity: the one that began it, while it lives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mldiagnostics.identity.environment import is_running, started

if TYPE_CHECKING:
    from collections.abc import MutableMapping

VARIABLE = "MLDIAG_OWNER"


def claim(run_id: str, env: MutableMapping[str, str]) -> bool:
    """Become the process that speaks for the run, for all subprocesses to see; false if a living ancestor is."""
    owner_run, _, owner = env.get(VARIABLE, "").partition("/")
    pid, _, since = owner.partition("/")
    if owner_run == run_id and pid.isdecimal() and int(pid) != os.getpid() and is_running(int(pid), since):
        return False
    env[VARIABLE] = _claimed(run_id)
    return True


def release(run_id: str, env: MutableMapping[str, str]) -> None:
    """Let a subprocess speak for the run from now on."""
    if env.get(VARIABLE) == _claimed(run_id):
        del env[VARIABLE]


def _claimed(run_id: str) -> str:
    return f"{run_id}/{os.getpid()}/{started(os.getpid())}"
