"""Diagnosis of a session with phases and arrivals of its hosts. Pure."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from mldiagnostics.findings import SEVERITIES, SLOW_CODES, Diagnosis, Finding, FindingHost

from mldiagnostics_view.limits import MAX_HEAT_CELLS, MAX_LISTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.runs import FindingRow
    from mldiagnostics_diagnosis.summary import HostSummary, Steps


NEXT_STEP = "Diagnose the session with `mldiag diagnose` to see what each step loses, by host and phase."


def session_diagnosis(diagnosis: Diagnosis, summaries: Sequence[HostSummary]) -> dict[str, Any]:
    """Return the findings, and the hosts in step with phases and arrivals.

    Args:
        diagnosis: Findings about the session.
        summaries: Summaries of its hosts. Those without steps have no part in the picture.
    """
    hosts = [(summary.host, summary.steps) for summary in summaries if summary.steps and summary.steps.numbers]
    hosts = sorted(hosts, key=lambda host: host[0])[:MAX_LISTED]
    slow = {host.name for each in diagnosis.findings if each.code in SLOW_CODES for host in each.hosts}
    numbers = _common_steps([steps for _, steps in hosts])
    arriving = [(name, steps) for name, steps in hosts if steps.arrivals]
    shown = numbers[: MAX_HEAT_CELLS // max(1, len(arriving))]
    return {
        "diagnosis": diagnosis.to_json(),
        "hosts": [{"name": name, "phases": _phases(steps), "isSlow": name in slow} for name, steps in hosts],
        "arrivals": {
            "steps": shown,
            "hosts": [name for name, _ in arriving],
            "rows": [[_by_number(steps)[number] for number in shown] for _, steps in arriving],
        },
    }


def noted_diagnosis(session: str, findings: Sequence[FindingRow]) -> dict[str, Any] | None:
    """Return the findings about a session in the status of its run; None without any.

    It has neither costs nor hosts for a picture: the files of the session cannot be read from here.
    """
    own = [finding for finding in findings if finding.session == session]
    return session_diagnosis(Diagnosis(session, 0, 0, None, tuple(map(_finding, own))), ()) if own else None


def _finding(row: FindingRow) -> Finding:
    hosts = tuple(FindingHost(pod, pod=pod) for pod in row.hosts)
    severity = next(each for each in SEVERITIES if each == row.severity)
    return Finding(row.code, severity, row.message, NEXT_STEP, hosts, len(hosts))


def _common_steps(hosts: Sequence[Steps]) -> list[int]:
    """Return the steps that all hosts have."""
    if not hosts:
        return []
    return sorted(set(hosts[0].numbers).intersection(*(steps.numbers for steps in hosts[1:])))


def _phases(steps: Steps) -> Mapping[str, float]:
    """Return the mean time of a step in each phase, in seconds."""
    return {phase: fmean(series) for phase, series in steps.phases.items() if any(series)}


def _by_number(steps: Steps) -> Mapping[int, float]:
    return dict(zip(steps.numbers, steps.arrivals, strict=True))
