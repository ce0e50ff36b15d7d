"""Logs as JSON lines on standard output, with fields that name the object.

A call names the values of its message, `log.warning("Lease %(lease)s: lost", {"lease": name})`: each is a field too.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TextIO

from pythonjsonlogger.json import JsonFormatter

_about: ContextVar[dict[str, str]] = ContextVar("about", default={})  # noqa: B039 - never changed, only replaced

# Libraries that log every request at INFO; only their warnings are kept.
_CHATTY: Final = ("kopf", "kubernetes", "aiohttp.access", "asyncio", "grpc", "google", "urllib3")


@contextmanager
def about(**fields: str) -> Iterator[None]:
    """Add fields (`object`, `namespace`, `uid`, …) to every log line of the block.

    Tasks that are created in the block inherit the fields.
    """
    token = _about.set({**_about.get(), **fields})
    try:
        yield
    finally:
        _about.reset(token)


def _add_fields(record: logging.LogRecord) -> bool:
    named = record.args if isinstance(record.args, Mapping) else {}
    for field, value in {**_about.get(), **named}.items():
        if not hasattr(record, field):
            setattr(record, field, value if isinstance(value, str | int | float | None) else str(value))
    return True


def configure(level: str, stream: TextIO = sys.stdout) -> None:
    """Write all logs of the process at `level` and above as JSON lines to `stream`."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(_add_fields)
    handler.setFormatter(
        JsonFormatter(
            "{levelname}{name}{message}",
            style="{",
            rename_fields={"levelname": "severity", "name": "logger"},
            timestamp="time",
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == "DEBUG" else logging.WARNING)
