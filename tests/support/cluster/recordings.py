"""Reviews recorded from the real controllers (by `e2e/record_reviews.py`), and the decisions about them."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import jsonpatch
from mldiagnostics_api.injection import (
    Injection,
    InjectionSettings,
    NotInjected,
    OwnersUnknown,
    controller_of,
    decide,
    patch,
)
from mldiagnostics_api.workloads.owners import ObjectReference, owner_chain

Object = dict[str, Any]

NAMESPACE: Final = "e2e-injection-reviews"
FOLDER: Final = Path(__file__).parents[2] / "api/injection/reviews"
CLUSTER: Final = "train-cluster"
SETTINGS: Final = InjectionSettings(
    cluster=f"projects/p/locations/l/clusters/{CLUSTER}",
    storage="gs://bucket/runs",
    sinks=("jsonl:", "otlp://collector:4317"),
    control_plane_url="https://control-plane:8443",
    control_plane_ca="-----BEGIN CERTIFICATE-----",
)
NOW: Final = datetime(2026, 11, 21, 7, 0, 0, tzinfo=timezone.utc)


def recorded(title: str) -> tuple[Object, list[Object]]:
    """Return the pod as in admission, and its owners."""
    recording = json.loads((FOLDER / f"{title}.json").read_text())
    return recording["review"]["request"]["object"], recording["owners"]


def walked(pod: Object, owners: list[Object]) -> tuple[Any, ...]:
    """Walk up these owners as the webhook does, without reading pods."""

    def lookup(reference: ObjectReference) -> Object | None:
        assert reference.kind != "Pod"
        wanted = (reference.kind, reference.name)
        return next((each for each in owners if (each["kind"], each["metadata"]["name"]) == wanted), None)

    return owner_chain(controller_of(pod, NAMESPACE), lookup, pods=False)


def decided(
    pod: Object, owners: list[Object] | OwnersUnknown, namespace_labels: dict[str, str] | None = None
) -> Injection | NotInjected:
    """Decide as the webhook does; the cluster has these owners."""
    return decide(
        pod,
        namespace=NAMESPACE,
        namespace_labels=namespace_labels or {},
        namespace_annotations={},
        owners=walked(pod, owners) if isinstance(owners, list) else owners,
        settings=SETTINGS,
        now=NOW,
    )


def injected(pod: Object, owners: list[Object], namespace_labels: dict[str, str] | None = None) -> Object:
    """Return the pod with its injection, as the API server patches it."""
    decision = decided(pod, owners, namespace_labels)
    assert isinstance(decision, Injection), decision
    patched: Object = jsonpatch.apply_patch(pod, patch(pod, decision))
    return patched
