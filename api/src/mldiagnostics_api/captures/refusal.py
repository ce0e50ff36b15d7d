"""The refusal of a capture."""

from dataclasses import dataclass

from mldiagnostics_api.names import RefusalReason


@dataclass(frozen=True, slots=True)
class CaptureRefusal:
    """A capture that cannot be planned, with the reason."""

    reason: RefusalReason
    message: str
    transient: bool = False
    """Whether waiting may help."""


class RefusalError(Exception):
    """A capture is refused."""

    def __init__(self, reason: RefusalReason, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.refusal = CaptureRefusal(reason, message, transient=transient)
