"""Destinations of records: one small interface, chosen by URL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker, SinkRefused, SinkUnavailable
from mldiagnostics.sink_urls import check_sink_url

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BatchPolicy", "Sink", "SinkMaker", "SinkRefused", "SinkUnavailable", "sink_maker"]

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
"""Scheme of a URL -> module whose `maker(url)` returns its `SinkMaker`."""


def sink_maker(url: str) -> SinkMaker:
    """Return the maker of a URL's sink; no file or connection is opened yet.

    Raises:
        ConfigurationError: `url` is not the URL of a sink (see `mldiagnostics.sink_urls`), or its location is invalid.
        MissingExtraError: The sink's optional extra is not installed.
    """
    check_sink_url(url)
    module = import_module(_MODULES[url.partition(":")[0]])
    return cast("Callable[[str], SinkMaker]", module.maker)(url)
