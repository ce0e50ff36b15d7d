from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.capture_object import CaptureStatus, manifest
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection

GENERATED = re.compile(r"[a-z0-9]([a-z0-9-]{0,39})-")


@given(st.text(max_size=80))
def test_property_every_label_gives_a_valid_object(label: str) -> None:
    trigger = {"target": {"runRef": {"name": "trainer"}, "ranks": "0-1"}, "durationMilliseconds": 10}
    body = manifest(trigger, label=label)
    assert GENERATED.fullmatch(body["metadata"]["generateName"])
    ordered = manifest(trigger, label=label, order_id="0123456789")
    assert ordered["metadata"] == {"name": f"{body['metadata']['generateName']}0123456789"}
    made = {**body, "metadata": {"name": f"{body['metadata']['generateName']}x7k2p", "namespace": "ml", "uid": "u"}}
    parsed = MLDiagnosticsConnection.model_validate(made)
    assert parsed.spec.trigger_capture.model_dump(by_alias=True, exclude_none=True).items() >= trigger.items()


def test_the_status_of_a_new_and_of_a_complete_object() -> None:
    new: dict[str, Any] = {"metadata": {"name": "a", "namespace": "ml"}}
    status = CaptureStatus.of(new)
    assert (status.is_started, status.is_complete, status.phase, status.total) == (False, False, "", 0)
    done = {
        "phase": "Succeeded",
        "message": "captured 3 of 4",
        "progress": "3/4",
        "sessionId": "a-1",
        "targets": {"total": 4, "captured": 3},
        "conditions": [
            {"type": "Complete", "status": "True", "reason": "PartiallyCaptured"},
            {"type": "Diagnosed", "status": "Unknown", "message": "waits"},
        ],
        "diagnosis": {"state": "Pending"},
    }
    status = CaptureStatus.of(new | {"status": done})
    assert (status.is_complete, status.phase, status.reason) == (True, "Succeeded", "PartiallyCaptured")
    assert (status.diagnosis, status.diagnosis_message, status.findings) == ("Pending", "waits", ())
    assert (status.session, status.progress, status.captured, status.total) == ("a-1", "3/4", 3, 4)
