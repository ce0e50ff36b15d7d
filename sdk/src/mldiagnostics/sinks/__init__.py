"""Where records go: one small interface, chosen by URL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sinks.model import Pace, Sink, SinkMaker, SinkRefused, SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pace", "Sink", "SinkMaker", "SinkRefused", "SinkUnavailable", "sink_maker"]

_MODULES = {
    "cloud-logging": "mldiagnostics.sinks.cloud_logging",
    "jsonl": "mldiagnostics.sinks.jsonl",
    "mlflow": "mldiagnostics.integrations.mlflow",
    "otlp": "mldiagnostics.sinks.otlp",
    "otlp+http": "mldiagnostics.sinks.otlp",
    "otlp+https": "mldiagnostics.sinks.otlp",
    "prometheus": "mldiagnostics.sinks.prometheus",
    "stdout": "mldiagnostics.sinks.stdout",
    "tensorboard": "mldiagnostics.sinks.tensorboard",
    "wandb": "mldiagnostics.integrations.wandb",
}
"""Scheme of a URL -> module whose `maker(url)` returns what makes such sinks."""


def sink_maker(url: str) -> SinkMaker:
    """Return what makes the sink of a URL; no file or connection is opened yet.

    Raises `ConfigurationError` if there is no such sink or its URL is malformed, and `MissingExtraError` if what it
    needs is not installed.
    """
    scheme, colon, _ = url.partition(":")
    module = _MODULES.get(scheme) if colon else None
    if module is None:
        known = ", ".join(f"{name}:" for name in sorted(_MODULES))
        raise ConfigurationError(f"{url!r} is no sink for records: its URL must begin with one of {known}")
    maker = cast("Callable[[str], SinkMaker]", import_module(module).maker)
    return maker(url)
