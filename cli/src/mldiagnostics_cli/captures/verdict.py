"""Verdict of `mldiag capture`: the findings about the recorded session."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.layout import session_prefix, trace_stem
from mldiagnostics.store import open_store
from mldiagnostics_api.captures.pulse import divided_traces
from mldiagnostics_api.formats import enumerated
from mldiagnostics_diagnosis.sessions import diagnose_session

from mldiagnostics_cli.diagnosis.page import diagnosis_lines
from mldiagnostics_cli.output import has_colour, is_terminal, note, show, terminal_width

if TYPE_CHECKING:
    from mldiagnostics.findings import Diagnosis
    from mldiagnostics.store import Store

    from mldiagnostics_cli.captures.ending import CaptureEnd, CaptureWork
    from mldiagnostics_cli.interruption import Interruption


def with_verdict(work: CaptureWork, *, is_shown: bool = True, is_pulse: bool = False) -> CaptureWork:
    """Return a capture that prints the findings after its outcomes.

    In a cluster the operator makes them; traces are not downloaded for it. A diagnosis that fails is a remark: the
    capture keeps its result.

    Args:
        work: Captures once.
        is_shown: Whether the findings are printed.
        is_pulse: Whether the traces that the findings do not name are deleted.
    """

    async def run(interruption: Interruption) -> CaptureEnd:
        end = await work(interruption)
        if end.directory and not end.is_diagnosed and not interruption.is_requested:
            await asyncio.to_thread(_diagnose, end, is_shown=is_shown, is_pulse=is_pulse)
        return end

    return run


def _diagnose(end: CaptureEnd, *, is_shown: bool, is_pulse: bool) -> None:
    if end.namespace:
        if is_shown:
            session = shlex.quote(f"{end.directory}/{end.session}")
            note(f"To diagnose it: mldiag diagnose {session} -n {end.namespace}")
        return
    try:
        store = open_store(end.directory)
        diagnosis = diagnose_session(store, end.session).diagnosis
    except (MLDiagnosticsError, OSError) as error:
        note(f"mldiag: no diagnosis of session {end.session}: {error}")
        return
    if is_shown:
        width = terminal_width() if is_terminal() else None
        show("\n".join(["", *diagnosis_lines(diagnosis, width=width, colour=has_colour())]))
    if is_pulse:
        try:
            _keep_named(store, end.session, diagnosis)
        except (MLDiagnosticsError, OSError) as error:
            note(f"mldiag: traces of session {end.session} are not deleted: {error}")


def _keep_named(store: Store, session: str, diagnosis: Diagnosis) -> None:
    """Delete the traces that the findings do not name."""
    keys = (entry.key for entry in store.list(session_prefix(session)))
    kept, others = divided_traces(session, keys, diagnosis.findings)
    for key in others:
        store.delete(key)
    if others:
        hosts, count = enumerated([trace_stem(key) for key in kept]), len(kept) + len(others)
        note(f"Pulse: the traces of {hosts} are kept, and the summaries of all {count} hosts.")
