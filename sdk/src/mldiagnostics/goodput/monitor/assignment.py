"""What the monitor's process is told of its job, as one line of JSON."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.arguments import retention as length_of_time
from mldiagnostics.goodput.location import CACHE_DIR
from mldiagnostics.locations import absolute_location
from mldiagnostics.sink_urls import split_sinks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from mldiagnostics.goodput.google_cloud import GCPOptions

__all__ = ["CACHE_DIR", "COPY_INTERVAL", "DEVIATION", "EXPORTS", "GOODPUT", "ROLLING", "Assignment", "assigned", "line"]

EXPORTS = "MLDIAG_GOODPUT_EXPORTS"
COPY_INTERVAL = "ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS"

GOODPUT = "goodput"
DEVIATION = "step deviation"
ROLLING = "rolling windows"
"""The three uploaders, by the names that people read."""

_FOLDER = "goodput"
"""Below TensorBoard's directory, as its curves."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which job, where its log is, and what to tell of it where; times are seconds.

    `gcp` are the fields of `GCPOptions`, `exports` further places by URL. `flush_s` is how long the last upload may
    take, None without one for uploaders that nobody has stopped. `copies` is where copies of what was read go, empty
    for nowhere.
    """

    job: str
    logger: str
    log: str
    tensorboard: str = ""
    interval_s: float = 30.0
    deviation_interval_s: float = 10.0
    badput: bool = False
    slices: bool = False
    ideal_step_time_s: float | None = None
    retention_s: float | None = None
    cache_dir: str = ""
    copies: str = ""
    copy_interval_s: float = 3600.0
    flush_s: float | None = 10.0
    gcp: dict[str, Any] = field(default_factory=dict)
    exports: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Assignment:
        """Return what `to_json` was called on."""
        return cls(**{**document, "exports": tuple(document["exports"])})


def assigned(
    job_name: str,
    logger_name: str,
    *,
    log: str | os.PathLike[str] | None,
    tensorboard: str | os.PathLike[str],
    interval_s: float,
    deviation_interval_s: float,
    badput: bool,
    slices: bool,
    ideal_step_time_s: float | None,
    retention: timedelta | float | None,
    cache_dir: str | os.PathLike[str],
    copy_interval_s: float,
    flush_s: float | None,
    gcp: GCPOptions | None,
    exports: Sequence[str] | str | None,
) -> Assignment:
    """Return the assignment of a monitor by what its constructor was told and what the environment says.

    Raises `ConfigurationError` or TypeError for what cannot be meant.
    """
    from mldiagnostics.goodput.log import find_log  # noqa: PLC0415 - with the first uploader

    period = length_of_time(retention)
    told = os.environ.get(EXPORTS, "") if exports is None else exports
    directory = os.fspath(tensorboard or "")
    curves = absolute_location(directory) if directory else ""
    return Assignment(
        job=str(job_name),
        logger=str(logger_name),
        log=find_log(str(job_name), str(logger_name), log),
        tensorboard=curves,
        interval_s=_seconds("upload_interval", interval_s),
        deviation_interval_s=_seconds("step_deviation_interval_seconds", deviation_interval_s),
        badput=bool(badput),
        slices=bool(slices),
        ideal_step_time_s=ideal_step_time_s and _seconds("configured_ideal_step_time", ideal_step_time_s),
        retention_s=None if period is None else period.total_seconds(),
        cache_dir=os.environ.get(CACHE_DIR) or os.fspath(cache_dir),
        copies=f"{curves.rstrip('/')}/{_FOLDER}" if curves.startswith("gs://") else "",
        copy_interval_s=_copy_interval_s(copy_interval_s),
        flush_s=flush_s and _seconds("final_flush_timeout_seconds", flush_s),
        gcp={} if gcp is None else asdict(gcp),
        exports=split_sinks(told) if isinstance(told, str) else tuple(told),
    )


def _copy_interval_s(value: float) -> float:
    """Return the seconds that the environment says, else those that the program says; 0 is as often as can be."""
    told = os.environ.get(COPY_INTERVAL)
    try:
        said = float(told) if told else value
    except ValueError:
        said = math.nan
    name = f"{COPY_INTERVAL}={told}, or gcs_sync_interval_seconds" if told else "gcs_sync_interval_seconds"
    return said and _seconds(name, said)


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise ConfigurationError(f"{name}={value!r} is no number of seconds above 0")


def line(message: dict[str, Any]) -> bytes:
    """Return a message of either side as it is sent."""
    return json.dumps(message).encode() + b"\n"
