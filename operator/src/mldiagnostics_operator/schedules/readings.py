"""Readings of active runs for triggers, which all schedules of a namespace share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.schedules.run_readings import RunReadings

from mldiagnostics_operator.schedules.projections import current_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.schedules.projections import ActiveRun


class NamespaceReadings:
    """Readings of the runs of one namespace.

    A baseline takes 1.6 kB, so it belongs to the run and not to each schedule of it.

    Args:
        namespace: The namespace.
        exchange: Reports of the runs.
    """

    def __init__(self, namespace: str, exchange: RunExchange) -> None:
        self._namespace, self._exchange = namespace, exchange
        self._readings: dict[tuple[str, str], RunReadings] = {}

    def at(self, now: float) -> Callable[[ActiveRun], RunReadings]:
        """Return the readings of a run at a look, which observes each run once."""
        observed: set[tuple[str, str]] = set()

        def readings(run: ActiveRun) -> RunReadings:
            key = (run.name, run.run_id)
            own = self._readings.setdefault(key, RunReadings())
            if key not in observed:
                observed.add(key)
                reports = self._exchange.reports
                reported = reports.view(RunKey(self._namespace, run.run_id)) if reports else None
                own.observe(current_sample(run, reported), now)
            return own

        return readings

    def keep_only(self, runs: Collection[ActiveRun]) -> None:
        """Drop the readings of other runs."""
        active = {(run.name, run.run_id) for run in runs}
        self._readings = {key: each for key, each in self._readings.items() if key in active}
