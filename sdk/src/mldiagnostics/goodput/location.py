"""Where the goodput log of a job is, told by its two names: one rule for who writes it and who reads it; pure.

1. `log=` is the log itself: a directory, `file:///…`, `gs://…`, for readers also a single file or a run's directory.
   Nothing is appended, but to `cloud-logging:`, which is a project and no log: the two names follow.
2. `MLDIAG_GOODPUT_LOG` is a root for all logs: `<root>/<logger>/<job>`.
3. The storage of the run that the process is in, else `MLDIAG_STORAGE`, else `./mldiagnostics`, is a root for more than
   logs: `<root>/goodput/<logger>/<job>`.

A log stays where it was when its recorder began it, and there a reader in the same process finds it.

Both names are made names of files (see `layout.sanitize`); in `cloud-logging:` they are kept, quoted as in a URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CLOUD_LOGGING", "VARIABLE", "CloudLog", "cloud_log", "log_url"]

CLOUD_LOGGING = "cloud-logging:"
VARIABLE = "MLDIAG_GOODPUT_LOG"
_CUT = ("gs:/", "file:/")
_DEFAULT_ROOT = "mldiagnostics"


def log_url(
    *, log: str | None, logger_name: str, job_name: str, env: Mapping[str, str], run_storage: str | None = None
) -> str:
    """Return the path or URL of a job's log. `run_storage` is the root of the run that this process is in.

    Raises `ConfigurationError` for a URL that `pathlib` took a slash from: it would be a directory like any other.
    """
    root = log or env.get(VARIABLE)
    if root and root.startswith(_CUT) and "://" not in root:
        raise ConfigurationError(f"{root!r} lacks a slash: write it as a text, like gs://bucket/log or file:///log")
    if root and root.startswith(CLOUD_LOGGING):
        return _in_cloud_logging(root, logger_name, job_name)
    if log:
        return log
    if not root:
        root = f"{_joined(run_storage or env.get('MLDIAG_STORAGE') or _DEFAULT_ROOT)}goodput"
    return _joined(root) + "/".join((sanitize(logger_name), sanitize(job_name)))


class CloudLog(NamedTuple):
    """A log of Cloud Logging: `project` is empty if it is to be found out, `endpoint` if it is Google's own."""

    project: str
    endpoint: str
    logger_name: str
    job_name: str


def cloud_log(url: str) -> CloudLog:
    """Return what `cloud-logging://[project]/<logger>/<job>` or `cloud-logging:https://host/<logger>/<job>` names.

    Raises `ConfigurationError` if it is neither.
    """
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - only who has such a log

    parts = urlsplit(url.removeprefix(CLOUD_LOGGING))
    names = [unquote(name) for name in parts.path.split("/")[1:]]
    if len(names) != 2 or not all(names) or parts.scheme not in {"", "http", "https"}:
        raise ConfigurationError(
            f"{url!r} is no log of Cloud Logging: write cloud-logging://<project>/<logger name>/<job name>, without "
            "project the one of the credentials"
        )
    if parts.scheme:
        return CloudLog("", f"{parts.scheme}://{parts.netloc}", *names)
    return CloudLog(parts.netloc, "", *names)


def _in_cloud_logging(root: str, logger_name: str, job_name: str) -> str:
    from urllib.parse import quote, urlsplit  # noqa: PLC0415 - only who has such a log

    place = root.removeprefix(CLOUD_LOGGING)
    if urlsplit(place).path.strip("/"):  # the names are there already
        return root
    return f"{CLOUD_LOGGING}{place.rstrip('/') or '//'}/{quote(logger_name, safe='')}/{quote(job_name, safe='')}"


def _joined(root: str) -> str:
    return root if root.endswith("/") else f"{root}/"
