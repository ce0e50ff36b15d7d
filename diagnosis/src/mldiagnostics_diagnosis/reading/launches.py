"""Launches of collectives: by which execution, and when the host started it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics_diagnosis.reading.recording import Collective

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics_diagnosis.reading.recording import Device


class Executions:
    """Executions of programs on one device, where a trace lists them, as on TPU.

    Args:
        spans: Start and end in picoseconds, number and program of each execution.
    """

    def __init__(self, spans: Iterable[tuple[int, int, int | None, str]] = ()) -> None:
        self._spans = sorted(spans, key=lambda span: span[:2])
        self._starts = [span[0] for span in self._spans]

    def at(self, moment: int) -> tuple[int | None, str]:
        """Return number and program of the execution at an instant.

        Between executions, there is no number, and the program is empty.
        """
        index = bisect_right(self._starts, moment) - 1
        if index < 0 or moment > self._spans[index][1]:
            return None, ""
        return self._spans[index][2:]


@dataclass(frozen=True, slots=True)
class FoundCollective:
    """A collective operation with the numbers that lead to its launch."""

    device: Device
    start_ps: int
    end_ps: int
    run: int | None
    link: int | None = None
    """Number of the piece of work that another thread handed over."""
    correlation: int | None = None
    """Number that a GPU's driver gives to a launch and to its kernel."""


@dataclass(slots=True)
class Launches:
    """Launches and collectives, while the planes are read."""

    by_link: dict[int, int] = field(default_factory=dict)
    by_run: dict[int, int] = field(default_factory=dict)
    by_correlation: dict[int, int] = field(default_factory=dict)
    wanted: set[int] = field(default_factory=set)
    """Correlations of collectives."""
    collectives: list[FoundCollective] = field(default_factory=list)

    def add(self, collective: FoundCollective) -> None:
        """Add a collective of a device."""
        self.collectives.append(collective)
        if collective.correlation is not None:
            self.wanted.add(collective.correlation)

    def add_run(self, run: int, start: int) -> None:
        """Add an event of the host that handles an execution; the first one launches it."""
        self.by_run[run] = min(self.by_run.get(run, start), start)

    def resolve(self) -> None:
        """Give the collectives, with the times of their launches, to their devices."""
        for each in self.collectives:
            times = (
                self.by_link.get(each.link) if each.link is not None else None,
                self.by_correlation.get(each.correlation) if each.correlation is not None else None,
                self.by_run.get(each.run) if each.run is not None else None,
            )
            launched = next((time for time in times if time is not None), each.start_ps)
            each.device.collectives.append(
                Collective(each.start_ps, each.end_ps, each.run, min(launched, each.start_ps))
            )
