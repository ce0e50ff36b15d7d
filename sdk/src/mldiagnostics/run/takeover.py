"""Let a daemon lead the run that the program started before it became one.

A daemon is a forked child in a session of its own, whose parent ends without a word. Other forked children, such as
data loaders, stay in the session of their parent: they record, and the phase is the parent's.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Protocol

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.identity.environment import session_id
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.lifecycle.current_run import CurrentRun
from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.run import ownership

PAUSE_S = 0.1


class ForkedRun(CurrentRun, Protocol):
    """A run in a forked child."""

    def lead_in_child(self, parent: str) -> None:
        """Lead the run, after the process of this incarnation."""


def watch(run: ForkedRun) -> None:
    """Lead the run in a forked child that is a daemon, once this process has ended."""
    session, incarnation = session_id(0), run.origin.incarnation

    def lead() -> None:
        if session_id(0) != session:
            threading.Thread(target=_serve, args=(run, incarnation), name="mldiagnostics-takeover", daemon=True).start()

    run.recording.on_child = lead


def _serve(run: ForkedRun, incarnation: str) -> None:
    try:
        while not ownership.claim(run.origin.run_id, os.environ):
            time.sleep(PAUSE_S)
        if not _is_over(run, incarnation):
            run.lead_in_child(incarnation)
    except Exception as error:  # noqa: BLE001 - the records are written all the same
        warn_once("run-takeover", f"the run is not led by this daemon: {error!r}; start the run in it")


def _is_over(run: ForkedRun, incarnation: str) -> bool:
    """Return whether the parent has written the end of the run."""
    from mldiagnostics.store import open_store  # noqa: PLC0415 - only in a daemon

    try:
        with open_store(run.storage).open(f"{run.origin.run_id}/{RUN_RECORD}") as file:
            document = json.load(file)
    except (MLDiagnosticsError, OSError, ValueError):
        return False
    if not isinstance(document, dict) or incarnation not in {document.get("incarnation"), document.get("forkedFrom")}:
        return False
    return document["phase"] in FINAL
