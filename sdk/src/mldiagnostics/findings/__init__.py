"""Findings of a diagnosis, the content of `diagnosis.json`."""

from mldiagnostics.findings.model import (
    INCONCLUSIVE,
    MAX_EVIDENCE,
    MAX_FINDINGS,
    MAX_HOSTS,
    SEVERITIES,
    SLOW_CODES,
    VERSION,
    Diagnosis,
    Figure,
    Finding,
    FindingHost,
    Severity,
)
from mldiagnostics.findings.parsing import MAX_DIAGNOSIS_BYTES, MAX_NUMBER, MAX_TEXT, parse_diagnosis

__all__ = [
    "INCONCLUSIVE",
    "MAX_DIAGNOSIS_BYTES",
    "MAX_EVIDENCE",
    "MAX_FINDINGS",
    "MAX_HOSTS",
    "MAX_NUMBER",
    "MAX_TEXT",
    "SEVERITIES",
    "SLOW_CODES",
    "VERSION",
    "Diagnosis",
    "Figure",
    "Finding",
    "FindingHost",
    "Severity",
    "parse_diagnosis",
]
