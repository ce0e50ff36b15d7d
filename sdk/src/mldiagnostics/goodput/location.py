"""Location of a job's goodput log, by one rule for writers and readers; pure.

1. `log=` is the log itself: a directory, `file:///…`, `gs://…`, for readers also a single file or a run's directory.
   Nothing is appended to it, except to `cloud-logging:`, which names a project: the two names follow.
2. `MLDIAG_GOODPUT_LOG` is a root for all logs: `<root>/<logger>/<job>`.
3. The storage of the current run, else `MLDIAG_STORAGE`, else `./mldiagnostics` is a root for logs and other files:
   `<root>/goodput/<logger>/<job>`.

A recorder writes to the first of these locations, and keeps writing there if the environment changes; a reader in the
same process reads there too. A reader in another process tries these locations in order, then the location to which the
last recorder of these names on this machine wrote (`goodput.log.pointers`).

Both names are converted to file names (see `layout.sanitize`); in `cloud-logging:` they are quoted as in a URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import sanitize
from mldiagnostics.locations import DEFAULT_STORAGE

if TYPE_CHECKING:
    from collections.abc import Mapping


CLOUD_LOGGING = "cloud-logging:"
VARIABLE = "MLDIAG_GOODPUT_LOG"
CACHE_DIR = "ML_GOODPUT_CACHE_DIR"
"""Environment variable for the directory of snapshots, as ml-goodput-measurement names it."""

_CUT = ("gs:/", "file:/")
DEFAULT = "the default"
"""Source of the location of a log where neither program nor environment names one."""


class LogLocation(NamedTuple):
    """The path or URL of a log, and its source in words, such as `MLDIAG_STORAGE`."""

    url: str
    known_by: str


def log_locations(
    *, log: str | None, logger_name: str, job_name: str, env: Mapping[str, str], run_storage: str | None = None
) -> list[LogLocation]:
    """Return the possible locations of a job's log; its recorder writes to the first.

    Args:
        log: The value of `log=`; if it is given, it is the only location.
        logger_name: Name of the log.
        job_name: Name of the job.
        env: Environment variables.
        run_storage: Root of the run that this process is in.

    Raises:
        ConfigurationError: A URL lacks a slash, as `pathlib` writes it: it would be an ordinary directory.
    """
    roots = ((log, "log="), (None if log else env.get(VARIABLE), VARIABLE))
    for root, known_by in roots:
        if root and root.startswith(_CUT) and "://" not in root:
            raise ConfigurationError(
                f"{known_by.removesuffix('=')}: {root!r} lacks a slash; use a string such as gs://bucket/log or file:///log"
            )
        if root and root.startswith(CLOUD_LOGGING):
            return [LogLocation(_in_cloud_logging(root, logger_name, job_name), known_by)]
    if log:
        return [LogLocation(log, "log=")]
    storages = (
        (run_storage, "the storage of this process's run"),
        (env.get("MLDIAG_STORAGE"), "MLDIAG_STORAGE"),
        (DEFAULT_STORAGE, DEFAULT),
    )
    known = [(env.get(VARIABLE), VARIABLE), *((root and f"{_joined(root)}goodput", by) for root, by in storages)]
    names = "/".join((sanitize(logger_name), sanitize(job_name)))
    return [LogLocation(_joined(root) + names, known_by) for root, known_by in known if root]


def log_url(
    *, log: str | None, logger_name: str, job_name: str, env: Mapping[str, str], run_storage: str | None = None
) -> str:
    """Return the first of `log_locations`, to which a job's log is written."""
    locations = log_locations(log=log, logger_name=logger_name, job_name=job_name, env=env, run_storage=run_storage)
    return locations[0].url


class CloudLog(NamedTuple):
    """A log of Cloud Logging.

    An empty `project` is looked up, an empty `endpoint` is Google's.
    """

    project: str
    endpoint: str
    logger_name: str
    job_name: str


def cloud_log(url: str) -> CloudLog:
    """Return the log of a `cloud-logging:` URL.

    It is `cloud-logging://[project]/<logger>/<job>` or `cloud-logging:https://host/<logger>/<job>`. Raises
    `ConfigurationError` for any other URL.
    """
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - only such logs need it

    parts = urlsplit(url.removeprefix(CLOUD_LOGGING))
    names = [unquote(name) for name in parts.path.split("/")[1:]]
    if len(names) != 2 or not all(names) or parts.scheme not in {"", "http", "https"}:
        raise ConfigurationError(
            f"{url!r}: not a log of Cloud Logging; use cloud-logging://<project>/<logger name>/<job name>; an empty "
            "project is the project of the credentials"
        )
    if parts.scheme:
        return CloudLog("", f"{parts.scheme}://{parts.netloc}", *names)
    return CloudLog(parts.netloc, "", *names)


def _in_cloud_logging(root: str, logger_name: str, job_name: str) -> str:
    from urllib.parse import quote, urlsplit  # noqa: PLC0415 - only such logs need it

    project = root.removeprefix(CLOUD_LOGGING)
    if urlsplit(project).path.strip("/"):  # the URL has the names
        return root
    return f"{CLOUD_LOGGING}{project.rstrip('/') or '//'}/{quote(logger_name, safe='')}/{quote(job_name, safe='')}"


def _joined(root: str) -> str:
    return root if root.endswith("/") else f"{root}/"
