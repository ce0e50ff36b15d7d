"""The interface of a source of system metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.metric_types import MetricType


class SystemSample(NamedTuple):
    """One value: a number, or one number per device, NaN for a device that failed."""

    metric: MetricType
    value: float | tuple[float, ...]
    labels: Mapping[str, str]


class SystemSource(Protocol):
    """A source of metrics; rates are over the time since the last `read`."""

    name: str

    def read(self) -> list[SystemSample]:
        """Return the current samples, perhaps none. May raise anything; is called again."""
