"""Options of a capture, by address or in a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["DEFAULT_DIRECTORY", "DEFAULT_PORT", "CaptureSettings"]

DEFAULT_PORT = 9999
"""Port of the profiler server where an address has none: the one of the operator and of the SDK."""

DEFAULT_DIRECTORY = "profiles"
"""Log directory of captures by address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """Options of a capture.

    The duration is in milliseconds, None stands for a default.
    """

    log_directory: str | None
    duration: int
    session: str | None
    port: int | None
    host_tracer: int
    device_tracer: int
    python_tracer: int
    allow_old_server: bool
    dry_run: bool
    diagnosed: bool = True
    """Whether an operator diagnoses the session, if its policy does not say otherwise."""

    def into(self, directory: str) -> CaptureSettings:
        """Return these options with a default for the log directory."""
        return replace(self, log_directory=self.log_directory or directory)
