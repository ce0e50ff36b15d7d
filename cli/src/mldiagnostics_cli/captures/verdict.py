"""Verdict of `mldiag capture`: the findings about the recorded session."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.store import open_store
from mldiagnostics_diagnosis.sessions import diagnose_session

from mldiagnostics_cli.diagnosis.page import diagnosis_lines
from mldiagnostics_cli.output import has_colour, is_terminal, note, show, terminal_width

if TYPE_CHECKING:
    from mldiagnostics_cli.captures.ending import CaptureEnd, CaptureWork
    from mldiagnostics_cli.interruption import Interruption

__all__ = ["with_verdict"]


def with_verdict(work: CaptureWork) -> CaptureWork:
    """Return a capture that prints the findings after its outcomes.

    In a cluster the operator makes them; traces are not downloaded for it. A diagnosis that fails is a remark: the
    capture keeps its result.
    """

    async def run(interruption: Interruption) -> CaptureEnd:
        end = await work(interruption)
        if end.directory and not end.is_diagnosed and not interruption.is_requested:
            await asyncio.to_thread(_show, end)
        return end

    return run


def _show(end: CaptureEnd) -> None:
    if end.namespace:
        session = shlex.quote(f"{end.directory}/{end.session}")
        note(f"To diagnose it: mldiag diagnose {session} -n {end.namespace}")
        return
    try:
        diagnosis = diagnose_session(open_store(end.directory), end.session).diagnosis
    except (MLDiagnosticsError, OSError) as error:
        note(f"mldiag: no diagnosis of session {end.session}: {error}")
        return
    width = terminal_width() if is_terminal() else None
    show("\n".join(["", *diagnosis_lines(diagnosis, width=width, colour=has_colour())]))
