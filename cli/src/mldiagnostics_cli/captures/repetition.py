"""A capture, once or again and again: at its slots and when its triggers fire."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.layout import capture_record_key
from mldiagnostics.store import open_store
from mldiagnostics_api.schedules.due import DueCaptures
from mldiagnostics_api.schedules.run_readings import RunReadings

from mldiagnostics_cli.captures.ending import CaptureEnd
from mldiagnostics_cli.captures.recurrence_record import RecurrenceRecord
from mldiagnostics_cli.captures.run_samples import SampledRun
from mldiagnostics_cli.exit_codes import INTERRUPTED
from mldiagnostics_cli.output import note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics_cli.captures.ending import CaptureWork
    from mldiagnostics_cli.captures.recurrence import Recurrence
    from mldiagnostics_cli.captures.run_samples import RunSamples
    from mldiagnostics_cli.interruption import Interruption


LOOK_S: Final = 5.0
"""Longest time between two looks at the clock and at the files of the run, as in a cluster."""


def repeated(
    work: CaptureWork, recurrence: Recurrence, samples: RunSamples | None, command: Sequence[object]
) -> CaptureWork:
    """Return a capture that goes on by itself.

    Args:
        work: Captures once.
        recurrence: Slots, triggers and budgets.
        samples: The run, if its files are known.
        command: Name of its record, see `RecurrenceRecord.opened`.
    """

    async def run(interruption: Interruption) -> CaptureEnd:
        with RecurrenceRecord.opened(command, time.time()) as record:
            return await repeat(work, recurrence.starting(record.since), record, samples, interruption)

    return run


async def repeat(
    work: CaptureWork,
    recurrence: Recurrence,
    record: RecurrenceRecord,
    samples: RunSamples | None,
    interruption: Interruption,
    *,
    clock: Callable[[], float] = time.time,
    look_s: float = LOOK_S,
) -> CaptureEnd:
    """Capture at slots and triggers until Ctrl-C, SIGTERM, or the end of the run.

    A capture that fails does not end it.

    Args:
        work: Captures once.
        recurrence: Slots, triggers and budgets.
        record: The captures until now.
        samples: The run, if its files are known.
        interruption: Ctrl-C.
        clock: Unix time.
        look_s: Longest time between two looks.

    Raises:
        ConfigurationError: The capture is not valid, so that it would fail each time.
    """
    stop, memory, end, problem = asyncio.Event(), DueCaptures(), CaptureEnd(exit_code=0), ""
    readings = RunReadings()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interruption.request)
    for line in recurrence.describe(clock()):
        note(line)
    with interruption.stopping(stop.set):
        while not interruption.is_requested:
            now = clock()
            run = await asyncio.to_thread(samples.read, now) if samples else SampledRun()
            if run.phase:
                note(f"The run has ended ({run.phase}), and with it the captures.")
                return end
            if run.problem and run.problem != problem:
                note(f"Waiting for the run. {run.problem}")
            problem = run.problem
            if not problem:
                if run.sample is not None:
                    readings.observe(run.sample, now)
                due = recurrence.due(memory, record.made, now, readings=readings, started=run.started)
                for wanted, refusal in due.refused:
                    note(f"{wanted.message}; not captured: {refusal.message}")
                for wanted in due.admitted:
                    record.add(wanted)
                    note(f"{wanted.message}:")
                    end = await _capture(work, wanted.message, interruption, end)
            with suppress(TimeoutError):
                async with asyncio.timeout(recurrence.pause_s(clock(), look_s)):
                    await stop.wait()
    return replace(end, exit_code=INTERRUPTED)


async def _capture(work: CaptureWork, reason: str, interruption: Interruption, before: CaptureEnd) -> CaptureEnd:
    try:
        end = await work(interruption)
    except ConfigurationError:
        raise
    except MLDiagnosticsError as error:
        note(f"mldiag: {error}")
        return before
    if end.directory and not end.namespace:
        try:
            await asyncio.to_thread(_keep_reason, end, reason)
        except (MLDiagnosticsError, OSError, ValueError) as error:
            note(f"mldiag: the reason is not kept with session {end.session}: {error}")
    return end


def _keep_reason(end: CaptureEnd, reason: str) -> None:
    """Add why a session was recorded to its record, as captures in a cluster have it."""
    store, key = open_store(end.directory), capture_record_key(end.session)
    with store.open(key) as file:
        document = json.loads(file.read())
    store.put(key, json.dumps(document | {"reason": reason}).encode(), replace=True)
