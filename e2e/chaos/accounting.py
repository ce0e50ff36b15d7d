"""Figures of one scenario, and the problems that they show; pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SUCCEEDED = frozenset({"Succeeded"})
"""Reason of a capture that nothing disturbs."""
NEVER = frozenset({"InternalError", "Unexpected"})
"""Reasons that blame a fault of the operator on nobody."""
SLOW_S = 3.0
"""A capture of the victim takes 0.6 s alone; under attack it may take this long."""
SLOW_REPORT_MS = 2000.0
"""A report of the victim takes 5 ms alone; under attack it may take this long."""
MEMORY_SHARE = 0.8
"""Highest peak of a replica, as a part of its memory limit."""
NOT_INJECTED_SHARE = 0.01
INJECTED, NOT_INJECTED, DENIED = "injected", "not injected", "denied"


@dataclass(frozen=True, slots=True)
class CaptureEnd:
    """A capture at its end, or when the suite stopped waiting for it."""

    name: str
    seconds: float
    status: Mapping[str, Any]
    allowed: Collection[str] = SUCCEEDED
    """Correct reasons of `Complete`, or of its results; empty: all except those in `NEVER`."""
    stored: bool = True
    """Whether the store has its trace; True if it has none to store, or if the store is gone."""

    @property
    def verdict(self) -> str:
        """Reason of the condition `Complete`; empty before the end."""
        conditions = self.status.get("conditions", ())
        return next(
            (each["reason"] for each in conditions if (each["type"], each["status"]) == ("Complete", "True")), ""
        )

    @property
    def reasons(self) -> set[str]:
        """The verdict, and the reasons of all results."""
        return {self.verdict, *(result["reason"] for result in self.status.get("results", ()) if "reason" in result)}

    @property
    def wrong(self) -> str:
        """The problem with a finished capture's verdict; empty if it is correct."""
        if not self.verdict:
            return ""
        message = self.status.get("message", "")
        if blamed := self.reasons & NEVER:
            return f"{self.name}: {', '.join(sorted(blamed))}: {message}"
        if self.allowed and not self.reasons.intersection(self.allowed):
            return f"{self.name}: {self.verdict}, expected {' or '.join(sorted(self.allowed))}: {message}"
        if any(not character.isprintable() for text in texts(self.status) for character in text):
            return f"{self.name}: the status has a control character"
        return ""


@dataclass(slots=True)
class Observed:
    """Everything that was seen during one scenario."""

    victims: list[CaptureEnd] = field(default_factory=list)
    """Captures of the tenant who does nothing wrong; their seconds count."""
    others: list[CaptureEnd] = field(default_factory=list)
    """Captures that the scenario disturbs, or the attacker's own."""
    profiled: Counter[str] = field(default_factory=Counter)
    """Sessions that the victims' servers recorded."""
    admissions: Counter[str] = field(default_factory=Counter)
    injection_expected: bool = True
    reports_ms: list[float] = field(default_factory=list)
    """Milliseconds of the reports of those who do nothing wrong."""
    blocked_ms: float = 0.0
    """Longest time that a probe of the leader took."""
    frozen_s: float = 0.0
    """Longest time without news in the status of a run that reports them."""
    faults: list[str] = field(default_factory=list)
    """Other wrong behaviour, as sentences."""
    exits: list[str] = field(default_factory=list)
    """How processes of operator and webhook ended that were restarted."""
    exits_expected: bool = False
    memory: dict[str, float] = field(default_factory=dict)
    """Highest resident memory by part, as a share of the limit."""

    @property
    def captures(self) -> list[CaptureEnd]:
        """All captures."""
        return [*self.victims, *self.others]

    @property
    def slowest_s(self) -> float:
        """Seconds of the slowest victim."""
        return max((each.seconds for each in self.victims), default=0.0)

    @property
    def stuck(self) -> list[str]:
        """Captures without a verdict."""
        return [each.name for each in self.captures if not each.verdict]

    @property
    def lost(self) -> list[str]:
        """Captures that succeeded although the store has no trace of them."""
        return [each.name for each in self.captures if each.verdict == "Succeeded" and not each.stored]

    @property
    def doubled(self) -> list[str]:
        """Captures whose pod was recorded more often than the status says."""
        return [each.name for each in self.captures if self._recordings(each) > max(each.status.get("attempt", 1), 1)]

    @property
    def oom_kills(self) -> int:
        """The processes killed for their memory."""
        return sum("OOMKilled" in each for each in self.exits)

    @property
    def wrong(self) -> list[str]:
        """Wrong verdicts and other wrong behaviour."""
        return [problem for each in self.captures if (problem := each.wrong)] + self.faults

    @property
    def not_injected_share(self) -> float:
        """Share of the created pods that got no run."""
        created = self.admissions[INJECTED] + self.admissions[NOT_INJECTED]
        return self.admissions[NOT_INJECTED] / created if created else 0.0

    def problems(self) -> list[str]:
        """Return everything that makes the scenario fail, as sentences."""
        counted = {"stuck": self.stuck, "lost": self.lost, "doubled": self.doubled}
        sentences = [f"{what}: {', '.join(names)}" for what, names in counted.items() if names] + self.wrong
        if self.oom_kills or not self.exits_expected:
            sentences += self.exits
        if self.admissions[DENIED]:
            sentences.append(f"{self.admissions[DENIED]} pods denied")
        if self.injection_expected and self.not_injected_share > NOT_INJECTED_SHARE:
            sentences.append(f"{self.admissions[NOT_INJECTED]} of {self.admissions.total()} pods not injected")
        return sentences

    def note_reports(self, log: str) -> None:
        """Add the reports that an honest client printed; any refused one is a fault."""
        statuses = Counter[str]()
        for line in log.splitlines():
            match line.split():
                case ["reported", status, spent_ms]:
                    statuses[status] += 1
                    self.reports_ms.append(float(spent_ms))
                case ["probed", spent_ms]:
                    self.blocked_ms = max(self.blocked_ms, float(spent_ms))
        if not statuses["200"]:
            self.faults.append("no report of the victim was accepted")
        self.faults += [
            f"{number} reports of the victim got {status}" for status, number in statuses.items() if status != "200"
        ]

    def warnings(self) -> list[str]:
        """Return the figures that are worse than wanted but depend on the machine."""
        sentences = [
            f"{part} {share:.0%} of its memory limit" for part, share in self.memory.items() if share > MEMORY_SHARE
        ]
        if self.slowest_s > SLOW_S:
            sentences.append(f"victim {self.slowest_s:.1f} s")
        if (slowest_ms := max(self.reports_ms, default=0.0)) > SLOW_REPORT_MS:
            sentences.append(f"report of the victim {slowest_ms:.0f} ms")
        return sentences

    def _recordings(self, capture: CaptureEnd) -> int:
        """Return how often the session of a capture, or one of its later attempts, was recorded."""
        session, attempt = capture.status.get("sessionId", ""), capture.status.get("attempt", 1)
        first = session.removesuffix(f"-{attempt}") if attempt > 1 else session
        own = re.compile(rf"{re.escape(first)}(-[2-9])?")
        return sum(count for name, count in self.profiled.items() if own.fullmatch(name))


def spread(values: Sequence[float], digits: int) -> str:
    """Return median, 95th percentile and maximum as text; `-` without a value."""
    ordered = sorted(values)
    chosen = [ordered[round(share * (len(ordered) - 1))] for share in (0.5, 0.95, 1.0)] if ordered else []
    return "/".join(f"{value:.{digits}f}" for value in chosen) or "-"


def texts(value: Any) -> Iterator[str]:
    """Yield all strings of a JSON value."""
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)
