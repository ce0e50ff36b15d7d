"""Findings of a diagnosis, the content of `diagnosis.json`."""

from mldiagnostics.findings.model import (
    MAX_FINDINGS,
    MAX_HOSTS,
    Diagnosis,
    Figure,
    Finding,
    FindingHost,
    Severity,
)
from mldiagnostics.findings.parsing import MAX_DIAGNOSIS_BYTES, parse_diagnosis

__all__ = [
    "MAX_DIAGNOSIS_BYTES",
    "MAX_FINDINGS",
    "MAX_HOSTS",
    "Diagnosis",
    "Figure",
    "Finding",
    "FindingHost",
    "Severity",
    "parse_diagnosis",
]
