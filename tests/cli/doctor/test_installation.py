"""Verdicts about definitions, Deployments, certificates and endpoints."""

from __future__ import annotations

import base64
import copy
import ssl
import time
from typing import TYPE_CHECKING, Any

import pytest
from cluster.certificates import make_certificates
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.resources import RUNS
from mldiagnostics_cli.doctor.finding import State
from mldiagnostics_cli.doctor.installation import (
    certificate_finding,
    definition_finding,
    deployment_finding,
    endpoint_finding,
    version_finding,
)

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = definition_of(RUNS)
SCHEMA = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_an_old_api_server_is_not_supported() -> None:
    assert version_finding({"gitVersion": "v1.31.9"}, "cluster 'lab'").remedy == "upgrade it to 1.32 or later"
    assert version_finding({"gitVersion": "v1.34.0-gke.1"}, "cluster 'lab'").state is State.FINE


def test_an_older_definition_names_the_fields_that_it_lacks() -> None:
    assert definition_finding("MLRun", DEFINITION, SCHEMA).state is State.FINE
    older = copy.deepcopy(SCHEMA)
    del older["properties"]["spec"]["properties"]["retention"]
    finding = definition_finding("MLRun", DEFINITION, older)
    assert (finding.state, finding.message) == (
        State.BROKEN,
        "MLRun: older than this command line: lacks spec.retention",
    )
    assert definition_finding("MLRun", DEFINITION, None).message == "MLRun: not installed in this cluster"


@pytest.mark.parametrize(
    ("version", "state"), [("0.9.9", State.BROKEN), ("1.2.0", State.FINE), ("1.10.0", State.FINE), ("", State.FINE)]
)
def test_an_operator_that_is_older_is_broken(version: str, state: State) -> None:
    deployment = {
        "metadata": {"name": "op", "namespace": "ml", "labels": {"app.kubernetes.io/version": version}},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "operator"}]}}},
        "status": {"availableReplicas": 1},
    }
    assert deployment_finding("operator", [deployment], "1.2.0").state is state
    assert "not installed" in deployment_finding("webhook", [deployment], "1.2.0").message


def configuration(bundle: bytes) -> dict[str, Any]:
    client = {"caBundle": base64.b64encode(bundle).decode(), "service": {"namespace": "ml", "name": "webhook"}}
    return {"metadata": {"name": "injection"}, "webhooks": [{"name": "workload", "clientConfig": client}]}


def test_an_expired_authority_is_broken_and_names_the_restart(tmp_path: Path) -> None:
    authority = make_certificates(tmp_path, hosts=["127.0.0.1"]).ca.read_bytes()
    context = ssl.create_default_context(cadata=authority.decode())
    end = ssl.cert_time_to_seconds(str(context.get_ca_certs()[0]["notAfter"]))
    assert certificate_finding(configuration(authority), time.time()).state is State.FINE
    expired = certificate_finding(configuration(authority), end + 3 * 86_400)
    assert expired.message == "injection: its authority expired 3 days ago"
    assert expired.remedy.startswith("kubectl rollout restart deployment -n ml ")
    assert "expires in 2 hours" in certificate_finding(configuration(authority), end - 7200).message
    for bundle in (b"", b"not a certificate", "größe".encode()):
        assert certificate_finding(configuration(bundle), end).state is State.BROKEN


def test_a_service_needs_a_ready_endpoint() -> None:
    ready, not_ready = ({"conditions": {"ready": value}} for value in (True, False))
    assert endpoint_finding("webhook", "ml/w", [{"endpoints": [not_ready]}, {"endpoints": None}]).state is State.BROKEN
    assert endpoint_finding("webhook", "ml/w", [{"endpoints": [ready, not_ready]}]).message.endswith("1 ready endpoint")
