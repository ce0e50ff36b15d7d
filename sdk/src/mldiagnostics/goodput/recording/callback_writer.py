"""Events that go to an object of the program instead of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.recording.arguments import posix_seconds

if TYPE_CHECKING:
    from mldiagnostics.pipeline.buffer import PayloadMaker


class CallbackWriter:
    """Calls `write_cloud_logging_entry` of an object with each payload."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(
        self,
        make_payload: PayloadMaker,
        moment: object = None,
        step: object = None,
        steady_s: float | None = None,  # noqa: ARG002 - for logs that record steps of the clock
    ) -> None:
        """See `EventWriter.write`."""
        t = posix_seconds(moment)
        if t is None:
            return
        try:
            number: Any = step
            self._writer.write_cloud_logging_entry(make_payload(t, None if step is None else int(number), ""))
        except Exception as error:  # noqa: BLE001 - the object is the program's, and the training goes on
            warn_once(
                "goodput-writer",
                f"cloud_logger={type(self._writer).__name__}: write_cloud_logging_entry() failed, the event is lost: "
                f"{error!r}",
            )

    def note_clock(self) -> None:
        """Do nothing: the object of the program gets events only."""

    def flush(self) -> None:
        """Call `flush` of the object, if it has one."""
        try:
            if hasattr(self._writer, "flush"):
                self._writer.flush()
        except Exception as error:  # noqa: BLE001 - as above
            warn_once("goodput-writer-flush", f"cloud_logger={type(self._writer).__name__}: flush() failed: {error!r}")

    def close(self) -> None:
        """Flush; the program closes its object itself."""
        self.flush()
