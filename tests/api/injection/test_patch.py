from __future__ import annotations

import datetime as dt
from typing import Any

import jsonpatch
import pytest
from mldiagnostics_api.injection import InjectionSettings, decide, patch
from mldiagnostics_api.injection.model import InjectionReason, NotInjected
from support.cluster import admission
from support.cluster import builders as a


def patch_of(pod: dict[str, Any]) -> list[dict[str, Any]]:
    decision = decide(
        pod,
        namespace="ml",
        namespace_labels={},
        namespace_annotations={},
        owners=(),
        settings=InjectionSettings(cluster="c1"),
        now=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
    )
    return patch(pod, decision)


@pytest.mark.parametrize("env", [None, [], [{"name": "PATH", "value": "/bin"}]])
@pytest.mark.parametrize("annotations", [None, {}, {"note": "mine"}])
def test_null_empty_and_present_lists_are_extended(
    env: list[dict[str, str]] | None, annotations: dict[str, str] | None
) -> None:
    pod = a.pod(labels=admission.LABELLED)
    pod["metadata"]["annotations"] = annotations
    pod["spec"]["containers"][0]["env"] = env
    after = jsonpatch.apply_patch(pod, patch_of(pod))
    assert after["spec"]["containers"][0]["env"][len(env or ())]["name"] == "MLDIAG_POD_NAME"
    assert after["metadata"]["annotations"].items() >= (annotations or {}).items()
    assert "diagon.gke.io/run-id" in after["metadata"]["annotations"]


def test_keys_are_escaped_for_the_path() -> None:
    decision = NotInjected(reason=InjectionReason.TOO_LARGE, message="", requested=True, annotations={"a/b~c": "d"})
    pod = {"metadata": {"annotations": {"note": "mine"}}}
    assert jsonpatch.apply_patch(pod, patch(pod, decision)) == {
        "metadata": {"annotations": {"note": "mine", "a/b~c": "d"}}
    }


def test_a_decision_without_additions_is_an_empty_patch() -> None:
    decision = NotInjected(reason=InjectionReason.MALFORMED, message="no pod", requested=False, annotations={})
    assert patch({}, decision) == []
