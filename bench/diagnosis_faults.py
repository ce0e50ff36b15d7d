"""Faults of one session: drawn from a seed, with the verdict that a diagnosis must reach. Pure."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.findings import SLOW_CODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.findings import Diagnosis

PHASES: dict[str, str] = {
    "input": "input",
    "python": "host",
    "device": "compute",
    "backward": "compute",
    "callback": "callback",
    "collection": "collection",
    "compilation": "compilation",
    "checkpoint": "checkpoint",
}
"""Phase that a diagnosis must give as the cause."""
SEVERAL, ALTERNATING, NETWORK, NOTHING = "two slow hosts", "alternating hosts", "slow network", "nothing"
SCENARIOS: tuple[str, ...] = (*PHASES, SEVERAL, ALTERNATING, NETWORK, NOTHING)
_WORDS = (
    "amber",
    "basalt",
    "cedar",
    "ember",
    "fjord",
    "garnet",
    "heron",
    "juniper",
    "kelp",
    "lotus",
    "maple",
    "nectar",
)


@dataclass(frozen=True)
class Fault:
    """Additional work of one host."""

    kind: str
    rank: int
    share: float
    """Time in each of its steps, as a share of the healthy step."""
    is_busy: bool = False
    """Compute for the time rather than sleep."""
    place: int = 0
    """One of the places of the program in which this kind can be."""
    period: int = 1
    """Only in every so many steps."""
    turn: int = 0
    """The step of the period."""


@dataclass(frozen=True)
class Session:
    """The faults in the steps of one capture."""

    scenario: str
    seed: int
    faults: tuple[Fault, ...]
    names: tuple[str, ...]
    """Names of functions and annotations: the step, its input, other code."""

    @property
    def hosts(self) -> frozenset[int]:
        """Ranks that a diagnosis must name."""
        return frozenset(fault.rank for fault in self.faults)

    def command(self) -> dict[str, Any]:
        """Return the message to the processes."""
        return {"faults": [asdict(fault) for fault in self.faults], "names": self.names}


def draw(scenario: str, seed: int, hosts: int) -> Session:
    """Return a session: the seed chooses hosts, size (10 to 100 % of the healthy step), place and names."""
    rolls = random.Random(f"{scenario}-{seed}-{hosts}")
    share = rolls.uniform(0.1, 1.0)
    kind = rolls.choice(["input", "python", "device"])
    names = tuple(f"{rolls.choice(_WORDS)}_{rolls.choice(_WORDS)}_{rolls.randrange(100)}" for _ in range(3))
    if scenario in PHASES:
        period = rolls.choice([1, 1, 3]) if scenario == "checkpoint" else 1
        only = Fault(scenario, rolls.randrange(hosts), share * period, rolls.random() < 0.5, rolls.randrange(2), period)
        faults: tuple[Fault, ...] = (only,)
    elif scenario == SEVERAL:
        ranks = rolls.sample(range(hosts), 2)
        sizes = (share, max(share * rolls.uniform(0.7, 1.0), 0.1))
        faults = tuple(Fault(kind, rank, size) for rank, size in zip(ranks, sizes, strict=True))
    elif scenario == ALTERNATING:
        faults = tuple(Fault(kind, rank, max(share, 0.2), period=hosts, turn=rank) for rank in range(hosts))
    else:
        faults = ()
    return Session(scenario, seed, faults, names)


@dataclass(frozen=True)
class Judgement:
    """A diagnosis beside the injected faults."""

    verdict: str
    """Column of the confusion matrix."""
    is_host_right: bool
    is_cause_right: bool


def judge(session: Session, diagnosis: Diagnosis, ranks: Sequence[str]) -> Judgement:
    """Return whether a diagnosis names the hosts and the cause of the injected faults.

    Args:
        session: The injected faults.
        diagnosis: The diagnosis of the captured traces.
        ranks: Names of the hosts in the diagnosis, by rank.
    """
    about_hosts = [finding for finding in diagnosis.findings if finding.code in SLOW_CODES]
    named = {ranks.index(host.name) for finding in about_hosts for host in finding.hosts}
    first = about_hosts[0] if about_hosts else diagnosis.verdict
    phase = f" {first.phase or 'unknown'}" if first.code == "SlowHost" else ""
    if session.scenario in {NETWORK, NOTHING}:
        is_cause = not named and (session.scenario == NOTHING or first.code == "CommunicationBound")
        return Judgement(first.code + phase, not named, is_cause)
    if session.scenario == ALTERNATING:
        is_right = first.code == "AlternatingHosts" and len(named) > 1
        return Judgement(first.code + phase, is_right, is_right)
    code = "SeveralSlowHosts" if session.scenario == SEVERAL else "SlowHost"
    is_host = first.code == code and named == session.hosts
    kinds = {PHASES[fault.kind] for fault in session.faults}
    return Judgement(first.code + phase, is_host, is_host and first.phase in kinds)
