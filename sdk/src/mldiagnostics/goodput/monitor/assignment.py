"""What the monitor's process is told of its job, as one line of JSON."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.run.settings import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CACHE_DIR", "DEVIATION", "EXPORTS", "GOODPUT", "ROLLING", "Assignment", "assigned", "line"]

EXPORTS = "MLDIAG_GOODPUT_EXPORTS"
CACHE_DIR = "ML_GOODPUT_CACHE_DIR"

GOODPUT = "goodput"
DEVIATION = "step deviation"
ROLLING = "rolling windows"
"""The three uploaders, by the names that people read."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which job, where its log is, and what to tell of it where; times are seconds.

    `gcp` are the fields of `GCPOptions`, `exports` further places by URL. `flush_s` is how long the last upload may
    take, None without one for uploaders that nobody has stopped.
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


def assigned(job_name: str, logger_name: str, log: str | None, options: Mapping[str, Any]) -> Assignment:
    """Return the assignment of a monitor by what its constructor was told and what the environment says.

    Raises `ConfigurationError` for what cannot be meant.
    """
    from mldiagnostics.goodput.log import find_log  # noqa: PLC0415 - with the first uploader

    retention, ideal = options["retention"], options["ideal_step_time_s"]
    exports = options["exports"]
    if exports is None:
        exports = os.environ.get(EXPORTS, "")
    return Assignment(
        job=str(job_name),
        logger=str(logger_name),
        log=find_log(str(job_name), str(logger_name), log),
        tensorboard=_rooted(os.fspath(options["tensorboard"] or "")),
        interval_s=_seconds("upload_interval", options["interval_s"]),
        deviation_interval_s=_seconds("step_deviation_interval_seconds", options["deviation_interval_s"]),
        badput=bool(options["badput"]),
        slices=bool(options["slices"]),
        ideal_step_time_s=None if ideal is None else _seconds("configured_ideal_step_time", ideal),
        retention_s=retention.total_seconds() if hasattr(retention, "total_seconds") else retention,
        cache_dir=os.environ.get(CACHE_DIR) or os.fspath(options["cache_dir"]),
        flush_s=options["flush_s"],
        gcp={} if options["gcp"] is None else asdict(options["gcp"]),
        exports=listed(exports) if isinstance(exports, str) else tuple(exports),
    )


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise ConfigurationError(f"{name}={value!r} is no number of seconds above 0")


def _rooted(place: str) -> str:
    """Return a URL as it is and a path from the root, since the program may change its directory."""
    return os.path.abspath(os.path.expanduser(place)) if place and "://" not in place else place  # noqa: PTH100, PTH111


def line(message: dict[str, Any]) -> bytes:
    """Return a message of either side as it is sent."""
    return json.dumps(message).encode() + b"\n"
