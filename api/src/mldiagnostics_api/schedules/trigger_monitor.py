"""The triggers of one schedule: since when each is raised, and which fires now."""

from collections.abc import Collection, Sequence

from mldiagnostics_api.schedules.run_readings import RunReadings
from mldiagnostics_api.schedules.triggers import Firing, TriggerRule, TriggerType, is_worth


class TriggerMonitor:
    """Settling times of the triggers that are raised, by target.

    Earlier firings are an argument, as they outlive the process.
    """

    __slots__ = ("_raised",)

    def __init__(self) -> None:
        self._raised: dict[tuple[str, TriggerType], float] = {}

    def firing(
        self, target: str, run: RunReadings, rules: Sequence[TriggerRule], fired: Collection[Firing], now: float
    ) -> list[tuple[Firing, str]]:
        """Return the triggers of a target that fire now, with their messages.

        Args:
            target: Key of the target.
            run: Its readings.
            rules: Triggers of the schedule.
            fired: Earlier firings of the target.
            now: Current time.
        """
        firing: list[tuple[Firing, str]] = []
        for rule in rules:
            reading, key = run.read(rule.type, rule.limit), (target, rule.type)
            if not reading.message or reading.value is None:
                self._raised.pop(key, None)
                continue
            self._raised[key] = since = min(self._raised.get(key, now), now)
            attempt = run.sample.attempt
            if now - since >= rule.hold_s and is_worth(rule, reading.value, attempt, fired, now):
                firing.append((Firing(type=rule.type, time=now, attempt=attempt, value=reading.value), reading.message))
        return firing

    def forget(self, targets: Collection[str]) -> None:
        """Drop all but these targets."""
        self._raised = {key: since for key, since in self._raised.items() if key[0] in targets}
