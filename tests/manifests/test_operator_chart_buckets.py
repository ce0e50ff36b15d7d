"""The clients of buckets in every pod that opens one: their variables, certificates and keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from release.parts import OPERATOR
from release.render import Object, as_yaml, rendered
from release.schemas import kubeconform
from support.cluster.charts import one

if TYPE_CHECKING:
    from collections.abc import Sequence

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
ENV: Sequence[Object] = [
    {"name": "AWS_REGION", "value": "eu-central-1"},
    {"name": "AWS_ENDPOINT_URL", "value": "https://m"},
]
VALUES: Object = {
    "buckets": {"env": ENV, "ca": CA, "ports": [9000], "secretName": "writer"},
    "view": {"enabled": True, "bucketSecretName": "reader", "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://p"}]},
    "diagnosis": {"buckets": True, "bucketSecretName": "jobs"},
    "policy": {"defaultStorage": "s3://bucket/prefix"},
    "commonLabels": {"azure.workload.identity/use": "true"},
}
FILE = "/etc/mldiagnostics/bucket-ca.crt"


def pods(objects: list[Object]) -> dict[str, Object]:
    """Return the pods that open buckets, by the name of their container."""
    policy = one(objects, "ConfigMap", f"{OPERATOR.name}-policy")["data"]
    specs = [each["spec"]["template"] for each in objects if each["kind"] == "Deployment"]
    specs += [each for each in objects if each["kind"] == "Pod" and each["metadata"]["name"].endswith("-store")]
    job = json.loads(policy["diagnosis-job.json"])
    specs.append({"metadata": {"labels": job["labels"]}, **job["spec"]["template"]})
    return {each["spec"]["containers"][0]["name"]: each for each in specs}


@pytest.mark.parametrize(
    ("name", "secret"), [("operator", "writer"), ("store", "writer"), ("view", "reader"), ("diagnosis", "jobs")]
)
def test_each_pod_has_the_variables_certificates_and_its_own_keys(name: str, secret: str) -> None:
    objects = rendered(OPERATOR, VALUES)
    pod = pods(objects)[name]
    [container] = pod["spec"]["containers"]
    values = {each["name"]: each.get("value") for each in container["env"]}
    assert {each["name"]: each["value"] for each in ENV}.items() <= values.items()
    assert values["AWS_CA_BUNDLE"] == FILE
    assert container["envFrom"] == [{"secretRef": {"name": secret}}]
    assert ("HTTPS_PROXY" in values) == (name == "view")
    [mount] = [each for each in container["volumeMounts"] if each["mountPath"] == "/etc/mldiagnostics"]
    [volume] = [each for each in pod["spec"]["volumes"] if each["name"] == mount["name"]]
    assert one(objects, "ConfigMap", volume["configMap"]["name"])["data"]["bucket-ca.crt"] == CA
    assert pod["metadata"]["labels"]["azure.workload.identity/use"] == "true"
    assert kubeconform(as_yaml(objects), (REPOSITORY / "crds").glob("*.yaml")) == ""


def test_the_network_policy_of_diagnoses_opens_the_ports_of_the_servers() -> None:
    for values, ports in ((VALUES, [443, 9000]), ({"diagnosis": {"buckets": True}}, [443])):
        policy = one(rendered(OPERATOR, values), "NetworkPolicy", f"{OPERATOR.name}-diagnosis")
        assert [each["port"] for each in policy["spec"]["egress"][0]["ports"] if each["port"] != 53] == ports


def test_diagnoses_without_buckets_get_neither_variables_nor_keys() -> None:
    values: Object = {**VALUES, "diagnosis": {"bucketSecretName": "jobs"}, "volume.claim.enabled": True}
    [container] = pods(rendered(OPERATOR, values))["diagnosis"]["spec"]["containers"]
    assert "envFrom" not in container
    assert all(not each["name"].startswith("AWS_") for each in container["env"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"buckets.env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "x"}]},
            "'AWS_SECRET_ACCESS_KEY' is a key; put it",
        ),
        ({"buckets.env": [{"name": "MLDIAG_LOG_LEVEL", "value": "x"}]}, "the chart sets 'MLDIAG_LOG_LEVEL' itself"),
        ({"buckets.ca": "no"}, "buckets"),
        ({"buckets.ports": [0]}, "buckets"),
        ({"view": {"enabled": True, "extraEnv": [{"name": "MLDIAG_VIEW_PORT"}]}}, "view.extraEnv: the chart sets"),
    ],
    ids=str,
)
def test_a_value_that_cannot_work_is_rejected_by_name(values: Object, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        rendered(OPERATOR, values)


def test_a_key_may_come_from_a_secret_of_its_own() -> None:
    source = {"secretKeyRef": {"name": "own", "key": "secret"}}
    objects = rendered(OPERATOR, {"buckets.env": [{"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": source}]})
    [container] = one(objects, "Deployment", OPERATOR.name)["spec"]["template"]["spec"]["containers"]
    assert {"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": source} in container["env"]
