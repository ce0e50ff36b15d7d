"""Summary of a host's trace, `<session>/<host>.summary.json`. Pure.

Rules read nothing else.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from mldiagnostics.errors import ConfigurationError
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from mldiagnostics_diagnosis.phases import Phase  # noqa: TC001 - pydantic reads it
from mldiagnostics_diagnosis.reading.summarizing import MAX_OPERATIONS, MAX_STEPS, VERSION

MAX_SUMMARY_BYTES = 16 * 1024

Seconds = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=0, le=2**60)]
Count = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Shape = Annotated[str, StringConstraints(max_length=80)]
Series = Annotated[tuple[Seconds, ...], Field(max_length=MAX_STEPS)]
StepNumber = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Steps(_Part):
    """Steps in order; all lists have one entry for each.

    A step lasts from the end of the last collective of the step before to the end of its own last one, where all hosts
    leave together; without collectives from start to start. So phases of one host compare with those of another
    without a common clock.
    """

    source: Literal["annotations", "modules"]
    """Source of the numbers: annotations of the program, or the count of its most frequent module."""
    total: Annotated[int, Field(ge=0)]
    """Whole steps in the trace; of more than 64, every 2nd, 4th, 8th … run of 8 steps is kept, by their numbers."""
    numbers: Annotated[tuple[StepNumber, ...], Field(max_length=MAX_STEPS)]
    seconds: Series
    arrivals: Series
    """From the start of the step to that of its first collective; empty if the trace has no collectives."""
    waits: Series
    """In all collectives of the step, computation beside them included; empty without collectives."""
    phases: dict[Phase, Series]
    """Each phase that occurs; the phases of a step add up to its time."""

    @model_validator(mode="after")
    def _lengths(self) -> Self:
        number = len(self.numbers)
        if any(len(series) != number for series in (self.seconds, *self.phases.values())):
            raise ValueError("lists of different lengths")
        if len(self.arrivals) not in {0, number} or len(self.waits) != len(self.arrivals):
            raise ValueError("arrivals or waits of another length")
        if len(set(self.numbers)) != number:
            raise ValueError("a step number occurs twice")
        return self


class Operation(_Part):
    """One of the longest operations; figures are means of a step."""

    name: Name
    phase: Phase
    seconds: Seconds
    count: Count
    shape: Shape = ""
    """Of its result, such as `f32[128,256]`; empty if the trace does not say."""


class Memory(_Part):
    """Peak of the device's memory during the trace."""

    peak_bytes: Bytes
    limit_bytes: Bytes | None = None

    @property
    def share(self) -> float | None:
        """Share of the limit; None without a limit."""
        return self.peak_bytes / self.limit_bytes if self.limit_bytes else None


class Counters(_Part):
    """Shares of the device's peak rates while it computes.

    None where the trace lacks the counters.
    """

    compute: Share | None = None
    memory_bandwidth: Share | None = None


class HostSummary(_Part):
    """All that the trace of one host says."""

    v: Literal[1] = 1
    host: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Stem of the trace's file name."""
    trace_bytes: Bytes
    platform: Literal["cpu", "gpu", "tpu", "unknown"]
    device: Annotated[str, StringConstraints(max_length=80)] = ""
    """Kind of the device, such as `TPU v5 Lite`; empty if the trace does not say."""
    duration_s: Seconds
    """From the first to the last event."""
    program: Annotated[str, StringConstraints(max_length=16)] = ""
    """Digest of the names of the modules that hosts execute together; empty without such modules."""
    steps: Steps | None = None
    """None if the trace has no steps."""
    operations: Annotated[tuple[Operation, ...], Field(max_length=MAX_OPERATIONS)] = ()
    """The longest operations of the device, and the longest activities of the host."""
    memory: Memory | None = None
    counters: Counters | None = None
    coverage: Share = 0.0
    """Share of the time of the steps that the phases explain."""

    def encode(self) -> bytes:
        """Return the summary as the content of its file, at most 16 KiB."""
        return self.model_dump_json().encode()


def parse_summary(content: bytes, *, source: str) -> HostSummary:
    """Return the summary in the content of a file.

    Args:
        content: JSON of at most 16 KiB.
        source: Path or URL of the content, for messages.

    Raises:
        ConfigurationError: It is not a summary of this version.
    """
    if len(content) > MAX_SUMMARY_BYTES:
        problem = f"has {len(content)} bytes, more than {MAX_SUMMARY_BYTES}"
        raise ConfigurationError(f"{source}: not a summary of a trace: {problem}; diagnose the trace again")
    try:
        return HostSummary.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "content"
        raise ConfigurationError(
            f"{source}: not a summary of version {VERSION}: {place}: {first['msg']}; diagnose the trace again"
        ) from None
