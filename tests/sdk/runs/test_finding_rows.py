"""Findings about a run: of the newest session that has a diagnosis."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from mldiagnostics import diagnostics
from mldiagnostics.findings import Diagnosis, Finding
from mldiagnostics.runs import FindingRow, findings, sessions
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from pathlib import Path


def put(root: Path, session: str, *, stored: float, diagnosis: bytes | None) -> None:
    store = open_store(str(root))
    trace = f"plugins/profile/{session}/host-0.xplane.pb"
    store.put(trace, b"x")
    os.utime(root / trace, (stored, stored))
    if diagnosis is not None:
        store.put(f"plugins/profile/{session}/diagnosis.json", diagnosis)


def diagnosis_of(session: str, *codes: str) -> bytes:
    of_codes = tuple(Finding(code, "warning", f"{code} in {session}", "do this") for code in codes)
    return json.dumps(Diagnosis(session, 1, 5, 0.1, of_codes).to_json()).encode()


def test_the_newest_session_with_a_diagnosis_counts(tmp_path: Path) -> None:
    put(tmp_path, "first", stored=100.0, diagnosis=diagnosis_of("first", "InputBound"))
    put(tmp_path, "second", stored=200.0, diagnosis=diagnosis_of("second", "SlowHost", "InputBound"))
    put(tmp_path, "third", stored=300.0, diagnosis=None)
    rows = sessions(str(tmp_path))
    assert [row.is_diagnosed for row in rows] == [True, True, False]
    assert findings(rows) == [
        FindingRow("SlowHost", "warning", "SlowHost in second", "second", 200.0),
        FindingRow("InputBound", "warning", "InputBound in second", "second", 200.0),
    ]
    assert findings(rows)[0].to_json()["time"] == "1970-01-01T00:03:20.000000Z"
    assert findings([]) == []


def test_a_diagnosis_that_saw_nothing_hides_no_older_findings(tmp_path: Path) -> None:
    put(tmp_path, "first", stored=100.0, diagnosis=diagnosis_of("first", "Inconclusive"))
    put(tmp_path, "second", stored=200.0, diagnosis=diagnosis_of("second", "Inconclusive", "Inconclusive"))
    assert [row.session for row in findings(sessions(str(tmp_path)))] == ["second", "second"]
    put(tmp_path, "before", stored=50.0, diagnosis=diagnosis_of("before", "SlowHost"))
    put(tmp_path, "third", stored=300.0, diagnosis=diagnosis_of("third", "Inconclusive"))
    assert [(row.code, row.session) for row in findings(sessions(str(tmp_path)))] == [("SlowHost", "before")]
    put(tmp_path, "fourth", stored=400.0, diagnosis=diagnosis_of("fourth", "NoProblemFound"))
    assert [row.session for row in findings(sessions(str(tmp_path)))] == ["fourth"]


def test_a_diagnosis_of_another_session_is_a_warning(tmp_path: Path) -> None:
    put(tmp_path, "first", stored=100.0, diagnosis=diagnosis_of("other", "SlowHost"))
    before = diagnostics.counts().get("unreadable-diagnosis", 0)
    assert findings(sessions(str(tmp_path))) == []
    assert diagnostics.counts()["unreadable-diagnosis"] == before + 1
