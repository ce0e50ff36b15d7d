"""The diagnosis of a Job as the status of its capture; pure.

A tenant wrote the traces, so the reader may be theirs by now: its result says what was found, never who is who. Pods,
nodes and ranks are those of the operator's own results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.layout import trace_stem
from mldiagnostics.text.terminal import printable
from mldiagnostics_api.v1alpha1 import CaptureDiagnosis, CaptureFinding, FindingTarget
from mldiagnostics_api.v1alpha1.mlrun_status import MAX_FINDINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.findings import Diagnosis, Finding


MAX_TARGETS: Final = 8
MAX_MESSAGE: Final = 1024
_WORD: Final = 64
_SUMMARY: Final = 256
_DELETED: Final = "its trace was deleted after the diagnosis of the pulse; its summary is kept"


@dataclass(frozen=True, slots=True)
class RunDiagnosis:
    """Result of one Job."""

    diagnosis: Diagnosis
    run_id: str | None = None
    """Run of its hosts, if the capture has several."""
    directory: str = ""
    """Log directory of its session."""
    traces: Mapping[str, int] | None = None
    """Sizes of the traces that a pulse kept, by URL; None if none was deleted."""


def capture_diagnosis(
    diagnoses: Sequence[RunDiagnosis], results: Sequence[Mapping[str, Any]], *, runs: Sequence[str] = ()
) -> CaptureDiagnosis:
    """Return the diagnosis of a capture.

    It has the first finding of each run, and those that cost most.

    Args:
        diagnoses: Results of the Jobs, at least one.
        results: Results of the targets in the status of the capture.
        runs: Ids of the runs of the targets.
    """
    targets = {trace_stem(each["file"]): each for each in results if each.get("file")}
    everything = [(finding, each.run_id) for each in diagnoses for finding in each.diagnosis.findings]
    first = {id(each.diagnosis.findings[0]) for each in diagnoses}
    if len(diagnoses) > 1:  # those of one run are in the order of their cost
        everything.sort(key=lambda each: -each[0].cost_s)
    chosen = sorted(everything, key=lambda each: id(each[0]) not in first)[:MAX_FINDINGS]
    findings = [_finding(finding, targets, run_id) for finding, run_id in chosen]
    return CaptureDiagnosis(
        state="Done",
        summary=_summary(findings[0]),
        critical=sum(finding.severity == "critical" for finding, _ in everything),
        warnings=sum(finding.severity == "warning" for finding, _ in everything),
        findings=findings,
        runs=list(runs) or None,
    )


def results_left(results: Sequence[Mapping[str, Any]], diagnoses: Sequence[RunDiagnosis]) -> list[dict[str, Any]]:
    """Return the results of a capture without the files that its diagnosis deleted."""
    reduced = [(f"{each.directory}/", each.traces) for each in diagnoses if each.traces is not None]

    def is_deleted(file: str) -> bool:
        return any(file.startswith(prefix) and file not in traces for prefix, traces in reduced)

    return [_without_file(each) if is_deleted(each.get("file") or "") else dict(each) for each in results]


def bytes_left(diagnoses: Sequence[RunDiagnosis], directories: int) -> int | None:
    """Return the bytes of the traces that pulses kept.

    None if it is not known of every log directory.
    """
    sizes = [sum(each.traces.values()) for each in diagnoses if each.traces is not None]
    return sum(sizes) if len(sizes) == directories else None


def sentence(diagnosis: CaptureDiagnosis) -> str:
    """Return a diagnosis for an event: its summary, and the sentence of the reader."""
    messages = [finding.message for finding in diagnosis.findings or ()]
    return f"{diagnosis.summary}. {messages[0]}" if messages else diagnosis.summary or ""


def _finding(finding: Finding, targets: Mapping[str, Mapping[str, Any]], run_id: str | None) -> CaptureFinding:
    known = [targets[host.name] for host in finding.hosts if host.name in targets][:MAX_TARGETS]
    named = [FindingTarget(pod=each["pod"], node=each.get("node"), rank=each.get("rank")) for each in known]
    return CaptureFinding(
        code=_shown(finding.code, _WORD),
        severity=finding.severity,
        message=_shown(finding.message, MAX_MESSAGE),
        next_step=_shown(finding.next_step, MAX_MESSAGE),
        phase=_shown(finding.phase, _WORD) if finding.phase else None,
        operation=_shown(finding.operation, _WORD) if finding.operation else None,
        cost_seconds=finding.cost_s,
        cost_percent=round(100 * finding.cost_share, 1),
        targets=named or None,
        run_id=run_id,
    )


def _summary(finding: CaptureFinding) -> str:
    """Return the first finding for a column, by the operator's own names."""
    named = ", ".join(target.pod for target in (finding.targets or ())[:2])
    more = len(finding.targets or ()) - 2
    who = f" {named}" + (f" and {more} more" if more > 0 else "") if named else ""
    what = f" in {finding.phase}" if finding.phase else ""
    cost = f", {finding.cost_percent:g} % of the step" if finding.cost_percent else ""
    return f"{finding.code}{':' if who else ''}{who}{what}{cost}"[:_SUMMARY]


def _without_file(result: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in result.items() if key not in {"file", "bytes"}}, "message": _DELETED}


def _shown(text: str, length: int) -> str:
    return printable(text)[:length]
