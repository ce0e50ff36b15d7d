from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from mldiagnostics_api.injection import Injection, InjectionSettings, decide
from support.cluster import admission
from support.cluster import builders as a

SETTINGS = InjectionSettings(
    cluster="c1", control_plane_url="https://control", control_plane_ca="PEM", profiler_port=9012
)
OURS = {"name": "mldiagnostics", "projected": {"sources": [{"serviceAccountToken": {"audience": "mldiagnostics"}}]}}
THEIRS = {"name": "mldiagnostics", "emptyDir": {}}


def injection(pod: dict[str, Any], settings: InjectionSettings = SETTINGS) -> Injection:
    decision = decide(
        pod,
        namespace="ml",
        namespace_labels={},
        namespace_annotations={},
        owners=(),
        settings=settings,
        now=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
    )
    assert isinstance(decision, Injection)
    return decision


def lone(**parts: Any) -> dict[str, Any]:
    """Return a pod; `volumes`, `annotations` and `account` are the pod's, other parts its container's."""
    pod = a.pod(labels=admission.LABELLED, annotations=parts.pop("annotations", None))
    pod["spec"] |= {"volumes": parts.pop("volumes", []), "serviceAccountName": parts.pop("account", "default")}
    pod["spec"]["containers"][0] |= parts
    return pod


def names(contents: Injection) -> set[str]:
    return {variable["name"] for container in contents.containers for variable in container.variables}


def port(contents: Injection) -> str:
    (value,) = (v["value"] for c in contents.containers for v in c.variables if v["name"] == "MLDIAG_PROFILER_PORT")
    return str(value)


def test_the_token_is_for_the_control_plane_alone_and_short_lived() -> None:
    contents = injection(lone())
    assert contents.volume == {
        "name": "mldiagnostics",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"audience": "mldiagnostics", "expirationSeconds": 3600, "path": "token"}},
                {
                    "downwardAPI": {
                        "items": [
                            {
                                "path": "ca.crt",
                                "fieldRef": {"fieldPath": "metadata.annotations['diagon.gke.io/control-plane-ca']"},
                            }
                        ]
                    }
                },
            ]
        },
    }
    assert contents.annotations["diagon.gke.io/control-plane-ca"] == "PEM"
    assert contents.containers[0].mount == {
        "name": "mldiagnostics",
        "mountPath": "/var/run/secrets/mldiagnostics",
        "readOnly": True,
    }


def test_a_control_plane_with_a_public_certificate_needs_no_ca() -> None:
    contents = injection(lone(), InjectionSettings(cluster="c1", control_plane_url="https://control"))
    assert "MLDIAG_CONTROL_PLANE_URL" in names(contents)
    assert "MLDIAG_CONTROL_PLANE_CA" not in names(contents)
    assert "diagon.gke.io/control-plane-ca" not in contents.annotations


@pytest.mark.parametrize(
    ("parts", "reached"),
    [
        ({"volumeMounts": [{"name": "data", "mountPath": "/var/run/secrets"}]}, False),
        ({"volumeMounts": [{"name": "data", "mountPath": "/run/secrets/"}]}, False),
        ({"volumeMounts": [{"name": "data", "mountPath": "//var/./run"}]}, False),
        ({"volumeMounts": [{"name": "data", "mountPath": "/"}]}, False),
        ({"volumeMounts": [{"name": "data", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]}, True),
        ({"volumeMounts": [{"name": "data", "mountPath": "/var/runs"}]}, True),
        ({"volumeMounts": [{"name": "data", "mountPath": "data"}]}, True),
        ({"volumeMounts": [{"name": "data", "mountPath": "/var/run/secrets/mldiagnostics/"}]}, False),
        ({"volumeMounts": [{"name": "data", "mountPath": "/var/run/secrets/mldiagnostics/token"}]}, False),
        ({"volumeMounts": [{"name": "data", "mountPath": "/var/run/secrets/mldiagnostics-of-mine"}]}, True),
        ({"env": [{"name": "MLDIAG_CONTROL_PLANE_URL", "value": "https://mine"}]}, False),
        ({"env": [{"name": "MLDIAG_CONTROL_PLANE_CA", "valueFrom": {}}]}, False),
        ({"account": None}, False),
        ({"volumes": [THEIRS]}, False),
        ({"volumes": [OURS]}, True),
        ({"annotations": {"diagon.gke.io/control-plane-ca": "another"}}, False),
        ({"annotations": {"diagon.gke.io/control-plane-ca": "PEM"}}, True),
    ],
)
def test_access_to_the_control_plane_is_complete_or_missing(parts: dict[str, Any], *, reached: bool) -> None:
    contents = injection(lone(**parts))
    assert "MLDIAG_RUN_ID" in names(contents)
    given = {"MLDIAG_CONTROL_PLANE_URL", "MLDIAG_CONTROL_PLANE_CA"} & names(contents)
    assert len(given) == (2 if reached else 0)
    assert any(container.mount for container in contents.containers) is reached
    assert (contents.volume is not None) is (reached and parts.get("volumes") != [OURS])


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "9012"),
        ({"ports": [{"name": "mldiag-prof-0", "containerPort": 10001}]}, "10001"),
        ({"annotations": {"diagon.gke.io/profiler-ports": "10002,10003"}}, "10002"),
        ({"annotations": {"diagon.gke.io/profiler-ports": "none"}}, "9012"),
    ],
)
def test_the_profiler_port_is_the_one_that_a_capture_contacts(parts: dict[str, Any], expected: str) -> None:
    assert port(injection(lone(**parts))) == expected


def test_the_bound_does_not_depend_on_present_variables() -> None:
    pod = a.pod(labels=admission.LABELLED | {f"label-{n}": "x" * 63 for n in range(60)})
    dropped = injection(pod)
    assert dropped.labels_dropped
    pod["spec"]["containers"][0]["env"] = [{"name": "MLDIAG_WORKLOAD", "value": "mine"}]
    assert injection(pod).labels_dropped
