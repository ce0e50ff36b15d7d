"""The configuration of a monitor's process, sent as one line of JSON."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.location import CACHE_DIR
from mldiagnostics.goodput.queries.arguments import retention as parse_retention
from mldiagnostics.locations import absolute_location, is_bucket
from mldiagnostics.sink_urls import split_sinks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from mldiagnostics.goodput.google_cloud import GCPOptions


EXPORTS = "MLDIAG_GOODPUT_EXPORTS"
COPY_INTERVAL = "ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS"

GOODPUT = "goodput"
DEVIATION = "step deviation"
ROLLING = "rolling windows"
INTERVAL = "goodput interval"
"""Names of the four uploaders, as in messages."""

DEVIATION_INTERVAL_S = 10.0
COPY_INTERVAL_S = 3600.0

_FOLDER = "goodput"
"""Directory of the copies below TensorBoard's directory, the same as for its curves."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Job, log and destinations of a monitor; times are seconds.

    `gcp` are the fields of `GCPOptions`, `exports` the URLs of further sinks. `flush_s` is the timeout of the last
    upload at the end; None means no last upload. `copies` is the location for copies of snapshots, empty for none; a
    `copy_interval_s` of 0 means every save. `invalid` has the problem of each uploader that cannot run.
    """

    job: str
    logger: str
    log: str
    tensorboard: str = ""
    interval_s: float = 30.0
    deviation_interval_s: float = DEVIATION_INTERVAL_S
    badput: bool = False
    slices: bool = False
    ideal_step_time_s: float | None = None
    retention_s: float | None = None
    cache_dir: str = ""
    copies: str = ""
    copy_interval_s: float = COPY_INTERVAL_S
    flush_s: float | None = 10.0
    gcp: dict[str, Any] = field(default_factory=dict)
    exports: tuple[str, ...] = ()
    invalid: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the assignment as JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Assignment:
        """Return the assignment from the result of `to_json`."""
        return cls(**{**document, "exports": tuple(document["exports"])})


def assign(
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
    """Return the assignment from a monitor's arguments and the environment.

    An invalid interval of step deviations is a problem of their uploader only: programs for ml-goodput-measurement
    pass -1 when they do not start it.

    Raises:
        ConfigurationError, TypeError: an argument or a variable is invalid.
    """
    from mldiagnostics.goodput.log import find_log  # noqa: PLC0415 - with the first uploader

    period = parse_retention(retention)
    configured = os.environ.get(EXPORTS, "") if exports is None else exports
    directory = os.fspath(tensorboard or "")
    curves = absolute_location(directory) if directory else ""
    copies = f"{curves.rstrip('/')}/{_FOLDER}" if is_bucket(curves) else ""
    invalid: dict[str, str] = {}
    try:
        deviation_interval_s = _seconds("step_deviation_interval_seconds", deviation_interval_s)
    except ConfigurationError as error:
        deviation_interval_s, invalid[DEVIATION] = DEVIATION_INTERVAL_S, str(error)
    return Assignment(
        job=str(job_name),
        logger=str(logger_name),
        log=find_log(str(job_name), str(logger_name), log),
        tensorboard=curves,
        interval_s=_seconds("upload_interval", interval_s),
        deviation_interval_s=deviation_interval_s,
        badput=bool(badput),
        slices=bool(slices),
        ideal_step_time_s=ideal_step_time_s and _seconds("configured_ideal_step_time", ideal_step_time_s),
        retention_s=None if period is None else period.total_seconds(),
        cache_dir=os.environ.get(CACHE_DIR) or os.fspath(cache_dir),
        copies=copies,
        copy_interval_s=_copy_interval_s(copy_interval_s) if copies else COPY_INTERVAL_S,
        flush_s=flush_s and _seconds("final_flush_timeout_seconds", flush_s),
        gcp={} if gcp is None else asdict(gcp),
        exports=split_sinks(configured) if isinstance(configured, str) else tuple(configured),
        invalid=invalid,
    )


def _copy_interval_s(value: Any) -> float:
    """Return the interval from the environment, else `value`.

    Up to 0, it means every save. The default replaces an invalid value: a copy only saves the next machine the
    reading of the log.
    """
    configured = os.environ.get(COPY_INTERVAL)
    try:
        seconds = float(configured) if configured else value
    except ValueError:
        seconds = math.nan
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and math.isfinite(seconds):
        return max(0.0, float(seconds))
    given = f"{COPY_INTERVAL}={configured}" if configured else f"gcs_sync_interval_seconds={value!r}"
    warn_once(
        "goodput-copy-interval", f"{given}: not a number of seconds; set one, for example 3600, which is used instead"
    )
    return COPY_INTERVAL_S


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise ConfigurationError(f"{name}={value!r}: not a number of seconds above 0; write, for example, 30")


def line(message: dict[str, Any]) -> bytes:
    """Return a message as a line of JSON."""
    return json.dumps(message).encode() + b"\n"
