"""Check the arguments of `MLRun`'s methods, and call callbacks without raising."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.kinds import RunPhase
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.lifecycle.outcome import FINAL, Phase
from mldiagnostics.pipeline.drops import shown

if TYPE_CHECKING:
    from collections.abc import Callable


CLOSE_TIMEOUT_S = 10.0
"""Default time limit of `close()`; records that are not written by then count as dropped."""

SIGNAL_TIMEOUT_S = 5.0
"""Time limit of `close()` in a signal handler: the program needs most of the 30 s of Kubernetes for a checkpoint."""

LAST_WRITE_TIMEOUT_S = 2.0  # for run.json, even if a sink has used up the time
LAST_REPORT_TIMEOUT_S = 2.0  # for the control plane, the same

RUN_PHASES: dict[Phase, RunPhase] = {
    "Pending": RunPhase.PHASE_UNSPECIFIED,
    "Active": RunPhase.PHASE_ACTIVE,
    "Completed": RunPhase.PHASE_COMPLETED,
    "Failed": RunPhase.PHASE_FAILED,
}
"""Our name of a phase -> Google's."""


def final_phase(phase: RunPhase | str | None) -> Phase | None:
    """Return our name of a final phase that was given by Google's name or ours."""
    if phase is None:
        return None
    text = str(phase.value if isinstance(phase, RunPhase) else phase).upper()
    final = next((ours for ours, theirs in RUN_PHASES.items() if ours in FINAL and theirs.value == text), None)
    if final is None:
        warn_once(
            "phase",
            f"run.close(phase={phase!r}) is not a final phase and is ignored; pass RunPhase.PHASE_COMPLETED or "
            "RunPhase.PHASE_FAILED",
        )
    return final


def timeout_seconds(timeout_s: float) -> float:
    """Return a valid time limit of `MLRun.close` in seconds."""
    try:
        return max(0.0, min(float(timeout_s), threading.TIMEOUT_MAX))
    except (TypeError, ValueError):
        warn_once("close", f"run.close(timeout_s={timeout_s!r}) is not a number; {CLOSE_TIMEOUT_S:g} s is used")
        return CLOSE_TIMEOUT_S


def whole_step(number: Any) -> int | None:
    """Return the number of a step, None with a warning if it is invalid."""
    try:
        step = int(number)
        if isinstance(number, str) or step == number:
            return step
    except Exception:  # noqa: BLE001, S110 - methods of a foreign object may raise anything
        pass
    warn_once("step", f"run.step({shown(number)}) is ignored; pass a whole number")
    return None


def call_guarded(key: str, callback: Callable[..., object], *arguments: object) -> None:
    """Call a callback of the program; report its exception."""
    try:
        callback(*arguments)
    except Exception as error:  # noqa: BLE001 - the training continues
        warn_failed(key, callback, error)


def warn_failed(key: str, callback: Callable[..., object], error: Exception) -> None:
    """Report the exception of a callback of the program."""
    warn_once(f"{key}-{getattr(callback, '__qualname__', 'callback')}", f"a callback failed ({key}): {error!r}")
