"""Choose the process that leads a run among those that inherit its identity.

The process that started the run leads it while it lives; its subprocesses do not.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mldiagnostics.identity.environment import is_running, started

if TYPE_CHECKING:
    from collections.abc import MutableMapping

VARIABLE = "MLDIAG_OWNER"


def claim(run_id: str, env: MutableMapping[str, str]) -> bool:
    """Make this process the leader of the run, unless a living ancestor is.

    Return whether it leads.
    """
    owner_run, _, owner = env.get(VARIABLE, "").partition("/")
    pid, _, since = owner.partition("/")
    if owner_run == run_id and pid.isdecimal() and int(pid) != os.getpid() and is_running(int(pid), since):
        return False
    env[VARIABLE] = _claimed(run_id)
    return True


def release(run_id: str, env: MutableMapping[str, str]) -> None:
    """Allow a subprocess to lead the run."""
    if env.get(VARIABLE) == _claimed(run_id):
        del env[VARIABLE]


def _claimed(run_id: str) -> str:
    return f"{run_id}/{os.getpid()}/{started(os.getpid())}"
