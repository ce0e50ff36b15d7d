"""The Jobs that diagnose captures, as the operator's chart describes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mldiagnostics_api.captures.location import Location
from mldiagnostics_operator import config
from mldiagnostics_operator.diagnoses.job import VOLUME, JobTemplate
from release import version
from release.parts import OPERATOR
from release.render import Object, as_yaml, rendered
from release.schemas import kubeconform
from support.cluster.charts import environment, one

NAME = f"{OPERATOR.name}-diagnosis"
CLAIM: Object = {"volume.claim.enabled": True}
DIGEST = f"sha256:{'4f' * 32}"
OWN = OPERATOR.default_image.replace(OPERATOR.name, "own")
BUCKETS: Object = {"diagnosis": {"buckets": True}}


def document(objects: list[Object]) -> str | None:
    data = one(objects, "ConfigMap", f"{OPERATOR.name}-policy")["data"]
    job: str | None = data.get("diagnosis-job.json")
    return job


def job_of(values: Object, location: str = "volume:///ml/trainer") -> Object:
    """Return the Job of a capture with the template that these values make."""
    content = document(rendered(OPERATOR, values))
    assert content is not None
    template = JobTemplate.parse(content)
    assert template.obstacle(Location.parse(location)) == ""
    return template.manifest("uid-1", Location.parse(location), "slow-1")


@pytest.mark.parametrize(
    ("values", "diagnoses"),
    [
        ({}, False),  # the volume belongs to the operator's pod
        (CLAIM, True),
        ({"volume.existingClaim": "profiles"}, True),
        (BUCKETS, True),
        ({**CLAIM, "diagnosis": {"enabled": False}}, False),
    ],
    ids=str,
)
def test_jobs_are_made_where_they_can_read_traces(values: Object, diagnoses: bool) -> None:
    objects = rendered(OPERATOR, values)
    assert ("MLDIAG_DIAGNOSIS_JOB_FILE" in environment(objects, OPERATOR)) == diagnoses
    assert (document(objects) is not None) == diagnoses
    kinds = {item["kind"] for item in objects if item["metadata"]["name"] == NAME}
    assert kinds == ({"ServiceAccount", "NetworkPolicy", "Role", "RoleBinding"} if diagnoses else set())


def test_a_job_has_no_right_no_token_and_bounds() -> None:
    job = job_of(CLAIM)
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["serviceAccountName"] == NAME
    assert pod["automountServiceAccountToken"] is False
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["seccompProfile"]) == (
        True,
        {"type": "RuntimeDefault"},
    )
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {each["name"]: each["valueFrom"]["resourceFieldRef"]["resource"] for each in container["env"]} == {
        "MLDIAG_MEMORY_LIMIT": "limits.memory",
        "MLDIAG_CPU_LIMIT": "limits.cpu",
    }
    assert container["command"] == ["python", "-m", "mldiagnostics_diagnosis"]
    assert {"cpu", "memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
    assert job["spec"]["activeDeadlineSeconds"] > 0
    mounts = {mount["name"]: mount.get("subPath") for mount in container["volumeMounts"]}
    assert mounts == {"tmp": None, VOLUME: "ml/trainer/plugins/profile/slow-1"}
    job["metadata"]["namespace"] = "default"
    assert kubeconform(as_yaml([job]), ()) == ""


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({}, OPERATOR.default_image),
        ({"image.digest": DIGEST, "global.imageRegistry": "r.example.com"}, f"r.example.com/{OPERATOR.name}@{DIGEST}"),
        ({"image.tag": "1", "diagnosis": {"image": {"repository": "own"}}}, OWN),
        ({"diagnosis": {"image": {"repository": "own", "tag": "2"}}}, OWN.replace(version.current(), "2")),
    ],
    ids=str,
)
def test_a_job_has_the_image_of_the_operator_or_another_one(values: Object, image: str) -> None:
    [container] = job_of({**CLAIM, **values})["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image


@pytest.mark.parametrize(("values", "egress"), [(CLAIM, None), ({**CLAIM, **BUCKETS}, {53, 80, 443, 988})], ids=str)
def test_a_job_reaches_nothing_but_buckets(values: Object, egress: set[int] | None) -> None:
    objects = rendered(OPERATOR, values)
    policy: dict[str, Any] = one(objects, "NetworkPolicy", NAME)["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    rules = policy.get("egress")
    ports = None if rules is None else {port["port"] for rule in rules for port in rule["ports"]}
    assert ports == egress
    selector = policy["podSelector"]["matchLabels"].items()
    assert selector <= job_of(values)["spec"]["template"]["metadata"]["labels"].items()


NODES: Object = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
BESIDE: Object = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "own"}}}
BESIDE_OWN: Object = {**NODES, "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [BESIDE]}}


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ({}, []),
        ({"affinity": NODES}, []),
        ({"affinity": BESIDE_OWN}, [BESIDE]),
    ],
    ids=str,
)
def test_pods_run_where_the_operator_does_if_one_node_mounts_the_claim(values: Object, others: list[Object]) -> None:
    values = {**CLAIM, "volume.claim.accessModes": ["ReadWriteOnce"], **values}
    objects = rendered(OPERATOR, values)
    for pod in job_of(values)["spec"]["template"]["spec"], one(objects, "Pod", f"{OPERATOR.name}-test-store")["spec"]:
        *own, term = pod["affinity"].pop("podAffinity")["requiredDuringSchedulingIgnoredDuringExecution"]
        assert own == others
        assert term["labelSelector"]["matchLabels"]["app.kubernetes.io/name"] == OPERATOR.name
        assert pod["affinity"] == (NODES if "affinity" in values else {})
    operator = one(objects, "Deployment", OPERATOR.name)["spec"]["template"]["spec"]
    assert operator.get("affinity") == values.get("affinity")


@pytest.mark.parametrize(
    "values",
    [
        CLAIM,
        {**CLAIM, "affinity": NODES},
        {"volume.existingClaim": "profiles", "replicas": 1, "strategy": {"type": "RollingUpdate"}},
    ],
    ids=str,
)
def test_pods_run_on_any_node_if_several_mount_the_claim(values: Object) -> None:
    pod = job_of(values)["spec"]["template"]["spec"]
    assert pod.get("affinity") == values.get("affinity")


def test_the_operator_reads_the_template_at_its_start(tmp_path: Any) -> None:
    content = document(rendered(OPERATOR, CLAIM))
    assert content is not None
    (tmp_path / "job.json").write_text(content)
    settings = config.load({"MLDIAG_DIAGNOSIS_JOB_FILE": str(tmp_path / "job.json"), "POD_IP": "10.0.0.1"})
    assert settings.diagnosis_job == JobTemplate.parse(content)
    assert json.loads(content)["readsBuckets"] is False
