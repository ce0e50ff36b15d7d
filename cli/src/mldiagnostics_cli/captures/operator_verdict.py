"""Verdict of a capture in a cluster: the findings in its status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.findings import Finding, FindingHost

from mldiagnostics_cli.diagnosis.page import finding_lines
from mldiagnostics_cli.output import has_colour, is_terminal, note, show, terminal_width

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.captures.capture_object import CaptureStatus


def show_verdict(status: CaptureStatus) -> bool:
    """Print the findings of a complete capture, or why they are missing.

    Returns:
        Whether the operator diagnoses it.
    """
    match status.diagnosis:
        case "Done":
            width = terminal_width() if is_terminal() else None
            colour = has_colour()
            for finding in map(finding_of, status.findings):
                show("\n".join(["", *finding_lines(finding, width=width, colour=colour)]))
        case "Failed":
            note(f"mldiag: no diagnosis of session {status.session}: {status.diagnosis_message}")
        case "Pending":
            note(f"The diagnosis is not ready: kubectl get mldc {status.name} -n {status.namespace}")
        case _:
            return False
    return True


def finding_of(written: Mapping[str, Any]) -> Finding:
    """Return a finding in the status of a capture as one of a diagnosis."""
    targets = [
        FindingHost(each["pod"], each.get("rank"), each["pod"], each.get("node"))
        for each in written.get("targets") or ()
    ]
    return Finding(
        code=written["code"],
        severity=written["severity"],
        message=written["message"],
        next_step=written["nextStep"],
        hosts=tuple(targets),
        host_count=len(targets),
        phase=written.get("phase"),
        operation=written.get("operation"),
        cost_s=written.get("costSeconds") or 0.0,
        cost_share=(written.get("costPercent") or 0.0) / 100,
    )
