"""Findings: hosts, phase, operation and cost of each cause of slow steps; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

VERSION = 1
MAX_FINDINGS = 32
MAX_HOSTS = 16
"""Hosts that a finding names; `host_count` counts all."""
MAX_EVIDENCE = 16
INCONCLUSIVE = "Inconclusive"
"""Code of a finding that says why nothing could be seen; it resolves no other finding."""
SLOW_CODES = ("SlowHost", "SeveralSlowHosts", "AlternatingHosts")
"""Codes of findings whose hosts are slower than the others."""

Severity = Literal["critical", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, slots=True)
class FindingHost:
    """One host; rank, pod and node as far as the record of the session has them."""

    name: str
    """Name of its trace file, as in XProf."""
    rank: int | None = None
    pod: str | None = None
    node: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the host as JSON."""
        return {"name": self.name, "rank": self.rank, "pod": self.pod, "node": self.node}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number behind a finding, such as `("wait of this host", 0.0176, "s")`."""

    name: str
    value: float
    unit: str
    """`s`, `share` (0 to 1), `steps`, `hosts`, `bytes`, or empty for a bare number."""

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as JSON."""
        return {"name": self.name, "value": self.value, "unit": self.unit}


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of one rule."""

    code: str
    """Name of the rule, such as `SlowHost`; the page of the rules has all."""
    severity: Severity
    message: str
    """One sentence with hosts, phase and numbers."""
    next_step: str
    """One sentence with the action to take."""
    hosts: tuple[FindingHost, ...] = ()
    """The first 16 hosts that it is about; none if it is about all."""
    host_count: int = 0
    phase: str | None = None
    """Phase that takes the time: `input`, `host`, `callback`, `collection`, `compilation`, `transfer`, `checkpoint`,
    `compute`, `collective` or `idle`; `memory` for findings about memory."""
    operation: str | None = None
    cost_s: float = 0.0
    """Seconds of each step that the job loses by it."""
    cost_share: float = 0.0
    """`cost_s` as a share of the step, 0 to 1."""
    evidence: tuple[Figure, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON; unknown values are null."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "nextStep": self.next_step,
            "hosts": [host.to_json() for host in self.hosts],
            "hostCount": self.host_count,
            "phase": self.phase,
            "operation": self.operation,
            "costSeconds": self.cost_s,
            "costShare": self.cost_share,
            "evidence": [evidence.to_json() for evidence in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings of one session, at least one; the most expensive one first."""

    session: str
    hosts: int
    """Hosts with a summary."""
    steps: int
    """Steps that all of these hosts have."""
    step_s: float | None
    """Median time of a step in seconds; None without steps."""
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Finding:
        """The finding that matters most."""
        return self.findings[0]

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as the content of `diagnosis.json`."""
        return {
            "v": VERSION,
            "session": self.session,
            "hosts": self.hosts,
            "steps": self.steps,
            "stepSeconds": self.step_s,
            "findings": [finding.to_json() for finding in self.findings],
        }
