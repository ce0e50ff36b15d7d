"""One attack or disruption, its registration, and its measurement."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cluster.progress import ClusterError

from chaos.accounting import Observed
from chaos.stage import VICTIM, Stage

Act = Callable[[Stage, Observed], Iterator[None]]
"""Starts the attack, yields while the victim captures, and checks and removes its own objects at the end."""
CAPTURES = 3


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table."""

    name: str
    title: str
    act: Act
    short: bool
    """Whether it belongs to the short form."""
    injects: bool
    """Whether all pods get a run meanwhile."""
    restarts: bool
    """Whether processes of operator and webhook may restart."""
    captures: int
    """The victim's captures meanwhile."""


class Scenarios(dict[str, Scenario]):
    """Scenarios by name."""

    def __call__(
        self, title: str, *, short: bool = False, injects: bool = True, restarts: bool = False, captures: int = CAPTURES
    ) -> Callable[[Act], Act]:
        """Register a function as a scenario; its name becomes the scenario's."""

        def register(act: Act) -> Act:
            name = act.__name__.replace("_", "-")
            self[name] = Scenario(name, title, act, short, injects, restarts, captures)
            return act

        return register


def measure(scenario: Scenario, stage: Stage) -> Observed:
    """Run one scenario, wait until the cluster has recovered, and return the figures."""
    seen = Observed(injection_expected=scenario.injects, exits_expected=scenario.restarts)
    parts = (stage.operator, stage.webhook)
    for part in parts:
        part.start_measuring()
    before = stage.profiled()
    with stage.admitting(seen):
        try:
            with contextmanager(scenario.act)(stage, seen):
                for _ in range(scenario.captures):
                    seen.victims.append(stage.end(VICTIM, stage.capture(VICTIM)))
        except Exception as error:  # noqa: BLE001  # a broken scenario fails alone
            seen.faults.append(f"{type(error).__name__}: {error}")
    try:
        stage.settle()
    except ClusterError as error:
        seen.faults.append(f"the cluster does not recover: {error}")
    seen.profiled = Counter(stage.profiled()) - before
    for part in parts:
        seen.memory[part.part] = part.memory_share()
        seen.exits += part.exits()
    return seen
