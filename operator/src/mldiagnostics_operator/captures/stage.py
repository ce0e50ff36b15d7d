"""The stage of a capture, and the effect of a stop from outside."""

from __future__ import annotations

from enum import Enum, auto

from mldiagnostics.capture.model import Control


class StopReason(Enum):
    """Why a capture is stopped from outside."""

    CANCELLED = auto()
    """Its owner set `spec.cancel`."""
    GONE = auto()
    """The object was deleted, or another process finished it."""
    HANDED_OVER = auto()
    """This process is not the leader any more."""


class CaptureStage(Enum):
    """How far a capture has come in this process."""

    FOREIGN = auto()
    """Another process works on it, or did."""
    WAITING = auto()
    """No target has been contacted."""
    RECORDING = auto()
    CLOSING = auto()
    """All targets have ended; the final status is being written."""
    FINISHED = auto()


class CaptureState:
    """The stage of one capture and the stop that was requested, if any."""

    def __init__(self, stage: CaptureStage, *, cancel_requested: bool) -> None:
        self.stage = stage
        self.cancel_requested = cancel_requested
        self.stop_reason: StopReason | None = None
        self.control = Control()

    def stop(self, reason: StopReason) -> bool:
        """Request a stop, and return whether the capture's task is to be cancelled.

        A recording that is cancelled by its owner keeps its task: it ends early and stores the trace so far.
        A recording that is handed over goes on to its end.
        """
        self.cancel_requested |= reason is StopReason.CANCELLED
        if self.stop_reason is not None or self.stage in (CaptureStage.CLOSING, CaptureStage.FINISHED):
            return False
        if reason is StopReason.CANCELLED and self.stage is CaptureStage.RECORDING:
            self.control.terminate()
            return False
        is_idle = self.stage is CaptureStage.FOREIGN and reason is StopReason.HANDED_OVER
        if reason is StopReason.GONE or self.stage is CaptureStage.WAITING or is_idle:
            self.stop_reason = reason
            return True
        return False
