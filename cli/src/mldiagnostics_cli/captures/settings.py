"""Options of a capture, by address or in a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace

DEFAULT_DIRECTORY = "profiles"
"""Log directory of captures by address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """Options of a capture.

    The duration is in milliseconds, None stands for a default.
    """

    log_directory: str | None = None
    duration: int | None = 2000
    """None: some steps, for a pulse."""
    session: str | None = None
    port: int | None = None
    host_tracer: int = 2
    device_tracer: int = 1
    python_tracer: int = 0
    allow_old_server: bool = False
    past: bool = False
    """Whether to take what the programs have recorded continuously."""
    pulse: bool = False
    """Whether to keep only the traces that the diagnosis names."""
    dry_run: bool = False
    diagnosed: bool = True
    """Whether an operator diagnoses the session, if its policy does not say otherwise."""

    def duration_ms(self, step_time_s: float | None = None) -> int:
        """Return the duration in milliseconds; that of a pulse follows the time of a step."""
        if self.duration is not None:
            return self.duration
        from mldiagnostics_api.captures.pulse import pulse_ms  # noqa: PLC0415 - only for pulses

        return pulse_ms(step_time_s)

    def into(self, directory: str) -> CaptureSettings:
        """Return these options with a default for the log directory."""
        return replace(self, log_directory=self.log_directory or directory)
