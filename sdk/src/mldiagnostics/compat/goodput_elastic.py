"""Names of `goodput_elastic` in ml-goodput-measurement, for elastic jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
