"""What a source of system metrics is: something that is there, and is asked now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.metric_types import MetricType


class SystemSample(NamedTuple):
    """One value: a number, or one number for each device, NaN for a device that did not answer."""

    metric: MetricType
    value: float | tuple[float, ...]
    labels: Mapping[str, str]


class SystemSource(Protocol):
    """Gives readings; those that are rates are over the time since it was asked before."""

    name: str

    def read(self) -> list[SystemSample]:
        """Return what there is to tell now, which may be nothing. May raise anything; it is asked again later."""
