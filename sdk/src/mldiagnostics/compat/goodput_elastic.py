"""Names of `goodput_elastic` in ml-goodput-measurement, for elastic jobs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.goodput.queries.elastic_calculator import ElasticGoodputCalculator
    from mldiagnostics.goodput.recording.elastic_recorder import ElasticGoodputRecorder
    from mldiagnostics.goodput.recording.recorder import GoodputRecorder

__all__ = ["ElasticGoodputCalculator", "ElasticGoodputRecorder", "GoodputRecorder"]

_HOMES = {
    "ElasticGoodputCalculator": "mldiagnostics.goodput.queries.elastic_calculator",
    "ElasticGoodputRecorder": "mldiagnostics.goodput.recording.elastic_recorder",
    "GoodputRecorder": "mldiagnostics.goodput.recording.recorder",
}
"""Name -> the module that has it: a training process that only records loads only the recorder."""


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
