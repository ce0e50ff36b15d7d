"""Limits and certificates of the clients of obstore."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from obstore.store import RetryConfig

_RETRIES = 1000
"""More than the time limit allows, so that it alone ends them."""


_process_of_threads: int | None = None


def is_process_of_threads() -> bool:
    """Return whether this process has the threads that serve all clients of obstore.

    They start in the first process that uses a client. In a process that was forked later every request would wait for
    ever, those of new clients too.
    """
    global _process_of_threads  # noqa: PLW0603 - of the process, as the threads are
    if _process_of_threads is None:
        _process_of_threads = os.getpid()
    return _process_of_threads == os.getpid()


def retry_config(timeout_s: float) -> RetryConfig:
    """Return the retries: the last one starts within the first third of the time.

    It waits for a third at most, and its response comes within another one.
    """
    third = timedelta(seconds=timeout_s / 3)
    backoff = {"init_backoff": timedelta(seconds=0.25), "max_backoff": min(timedelta(seconds=8), third), "base": 2}
    return {"max_retries": _RETRIES, "retry_timeout": third, "backoff": backoff}  # type: ignore[typeddict-item]


def client_options(endpoint: str, timeout_s: float, *, certificates: str) -> Any:
    """Return the limits of a request and the certificates that it trusts.

    Args:
        endpoint: The URL of the service; `http://` allows a connection without TLS.
        timeout_s: Time limit of one request, retries included.
        certificates: A file of certificates in PEM, which are trusted too; "" for none.

    Raises:
        ConfigurationError: The endpoint is not a URL, or the file of certificates cannot be read.
    """
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise ConfigurationError(f"{endpoint!r}: the endpoint is not a URL; write https://{endpoint}")
    third = timedelta(seconds=timeout_s / 3)
    options: dict[str, Any] = {"timeout": third, "connect_timeout": min(third, timedelta(seconds=10))}
    if endpoint.startswith("http://"):
        options["allow_http"] = True
    if certificates:
        try:
            options["root_certificate"] = Path(certificates).read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{certificates!r}: cannot read the certificates: {error.strerror}") from error
    return options
