"""The chart as users get it: valid, closed to typing errors, and the same objects by helm, kustomize and plain YAML."""

import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from cluster.tools import KUBERNETES, tool
from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics_api.policy import Policy
from mldiagnostics_api.service.settings import declared
from mldiagnostics_api.v1alpha1 import read_connection
from mldiagnostics_operator import config
from release.manifests import KUSTOMIZE, stale
from release.render import CHART, HOOK, RELEASE, Object, as_yaml, everything, helm, namespace_object, portable, rendered
from release.schemas import kubeconform

EVERY_SWITCH = {
    "watch.namespaces": ["ml", "research"],
    "networkPolicy.profilerPorts.namespaces": ["ml"],
    "volume.claim.enabled": True,
    "volume.claim.storageClassName": "fast",
    "policy.allowedStorage": {"*": [], "ml": ["gs://", "volume:///ml/", "/tmp/profiles", "pod:///data"]},
    "policy.ttlSecondsAfterFinished": 3600,
    "policy.crossNamespaces": ["*"],
    "serviceAccount.annotations": {"iam.gke.io/gcp-service-account": "a@b.iam.gserviceaccount.com"},
    "imagePullSecrets": [{"name": "pull"}],
    "priorityClassName": "high",
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"operator": "Exists"}],
    "extraEnv": [{"name": "STORAGE_EMULATOR_HOST", "value": "http://gcs:4443"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
}


def one(objects: list[Object], kind: str, name: str = RELEASE) -> Object:
    (found,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == (kind, name))
    return found


def identity(found: Object) -> tuple[str, str, str, str]:
    metadata = found["metadata"]
    return found["apiVersion"], found["kind"], metadata.get("namespace", ""), metadata["name"]


def test_helm_lint_has_nothing_to_say() -> None:
    helm("lint", "--strict", f"--kube-version={KUBERNETES}")


@pytest.mark.parametrize("values", [{}, EVERY_SWITCH], ids=["default", "every switch"])
def test_every_object_obeys_its_schema(values: Object) -> None:
    assert kubeconform(as_yaml(rendered(values)), (REPOSITORY / "crds").glob("*.yaml")) == ""


def test_a_misspelt_field_is_found() -> None:
    deployment = one(rendered(), "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    assert "imagePullPolice" in kubeconform(as_yaml([deployment]))


@pytest.mark.parametrize("sample", sorted((REPOSITORY / "examples").rglob("*.yaml")), ids=lambda path: path.name)
def test_every_example_of_ours_obeys_the_crd(sample: Path) -> None:
    ours = [item for item in yaml.safe_load_all(sample.read_text()) if item["apiVersion"].startswith("diagon.gke.io/")]
    assert kubeconform(as_yaml(ours), (REPOSITORY / "crds").glob("*.yaml")) == ""


def test_kustomize_is_generated_from_the_chart_as_it_is() -> None:
    assert stale() == [], "run `make manifests`"


def test_helm_kustomize_and_plain_yaml_render_the_same_objects() -> None:
    by_helm = {identity(found): found for found in [namespace_object(), *portable(rendered())]}
    built = subprocess.run([tool("kubectl"), "kustomize", KUSTOMIZE], check=True, capture_output=True, text=True).stdout
    by_kustomize = {identity(found): found for found in yaml.safe_load_all(built)}
    by_yaml = {identity(found): found for found in yaml.safe_load_all(as_yaml(everything()))}
    assert by_kustomize == by_helm
    assert by_yaml == by_helm


def test_every_namespaced_object_names_its_namespace() -> None:
    kinds = {"Deployment", "Role", "RoleBinding", "ConfigMap", "Service", "ServiceAccount", "NetworkPolicy", "Pod"}
    namespaced = [item for item in rendered() if item["kind"] in kinds]
    assert {item["kind"] for item in namespaced} == kinds
    assert {item["metadata"].get("namespace") for item in namespaced} == {"gke-mldiagnostics"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"polcy": {}}, "polcy"),
        ({"policy.maxDuration": 3}, "maxDuration"),
        ({"policy.maxDurationSeconds": 0}, "maxDurationSeconds"),
        ({"policy.defaultStorage": "s3://bucket"}, "defaultStorage"),
        ({"policy.defaultStorage": "gs://bucket/../other"}, "defaultStorage"),
        ({"policy.allowedStorage": {"ml": ["/tmp/../etc"]}}, "allowedStorage"),
        ({"policy.allowedStorage": {"ML": ["/tmp"]}}, "allowedStorage"),
        ({"policy.defaultStorage": "gs://Bucket"}, "defaultStorage"),
        ({"policy.allowedStorage": {"ml": ["gs://b_/x"]}}, "allowedStorage"),
        ({"policy.allowedPorts": "9999-"}, "allowedPorts"),
        ({"policy.allowedPorts": "9999,10014-10000"}, "allowedPorts"),
        ({"policy.allowedPorts": 65536}, "allowedPorts"),
        ({"log.level": "LOUD"}, "level"),
        ({"replicas": "two"}, "replicas"),
    ],
    ids=str,
)
def test_values_that_cannot_be_meant_are_refused_by_name(values: Object, words: str) -> None:
    with pytest.raises(ClusterError, match=re.escape(words)):
        rendered(values)


def paths(tree: Any, prefix: str = "") -> set[str]:
    """Every value of values.yaml by its path; what users fill freely counts as one."""
    if not isinstance(tree, dict) or not tree:
        return {prefix}
    return {path for key, part in tree.items() for path in paths(part, f"{prefix}.{key}".lstrip("."))}


def schema_paths(schema: Object, prefix: str = "") -> set[str]:
    if not schema.get("properties"):
        return {prefix}
    parts = schema["properties"].items()
    return {path for key, part in parts for path in schema_paths(part, f"{prefix}.{key}".lstrip("."))}


def test_values_and_their_schema_know_the_same_keys() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    free = ("policy.allowedStorage", "resources", "networkPolicy.profilerPorts.podSelector")

    def trimmed(found: set[str]) -> set[str]:
        return {next((name for name in free if path.startswith(name)), path) for path in found}

    assert trimmed(schema_paths(schema)) - {"global"} == trimmed(paths(values))


@pytest.mark.parametrize("values", [{}, EVERY_SWITCH], ids=["default", "every switch"])
def test_the_operator_reads_what_the_chart_gives_it(values: Object, tmp_path: Path) -> None:
    objects = rendered(values)
    document = one(objects, "ConfigMap", f"{RELEASE}-policy")["data"]["policy.json"]
    (tmp_path / "policy.json").write_text(document)
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    environ = {entry["name"]: entry.get("value", "pod") for entry in container["env"]}
    known = {setting.variable for setting in declared(config.Config).values()}
    assert {name for name in environ if name.startswith("MLDIAG_")} <= known
    settings = config.load(environ | {"MLDIAG_POLICY_FILE": str(tmp_path / "policy.json")})
    assert settings.policy == Policy.parse(document)
    assert settings.watch_namespaces == tuple(values.get("watch.namespaces", ()))
    grace_s = one(objects, "Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert settings.shutdown_grace_s < grace_s


def test_without_values_the_operator_has_its_own_defaults() -> None:
    document = one(rendered(), "ConfigMap", f"{RELEASE}-policy")["data"]["policy.json"]
    assert Policy.parse(document) == Policy()


def test_a_changed_policy_makes_new_pods() -> None:
    def checksum(values: Object) -> str:
        template = one(rendered(values), "Deployment")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/policy"])

    assert checksum({"policy.maxDurationSeconds": 30}) != checksum({})
    assert checksum({"replicas": 3}) == checksum({})


def test_pods_are_restricted() -> None:
    pods = [
        one(rendered(), "Deployment")["spec"]["template"]["spec"],
        one(rendered(), "Pod", f"{RELEASE}-test-store")["spec"],
    ]
    for pod in pods:
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]


@settings(max_examples=10)
@given(st.integers(2**20, 2**31 - 1))
def test_property_the_memory_limit_has_room_for_the_largest_trace_twice(trace_bytes: int) -> None:
    deployment = one(rendered({"policy.maxTraceBytes": trace_bytes}), "Deployment")
    limit = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert int(limit.removesuffix("Mi")) * 2**20 >= 2 * trace_bytes + 255 * 2**20


def test_only_the_hook_is_left_out_of_plain_manifests() -> None:
    left_out = {identity(found) for found in rendered()} - {identity(found) for found in portable(rendered())}
    assert left_out == {("v1", "Pod", "gke-mldiagnostics", f"{RELEASE}-test-store")}
    assert HOOK not in as_yaml(everything())
    assert "helm" not in as_yaml(everything()).lower()


def test_definitions_stay_when_the_chart_goes_unless_told_otherwise() -> None:
    def policy(values: Object) -> str | None:
        (definition,) = (item for item in rendered(values) if item["kind"] == "CustomResourceDefinition")
        found: str | None = definition["metadata"].get("annotations", {}).get("helm.sh/resource-policy")
        return found

    assert policy({}) == "keep"
    assert policy({"crds.keep": False}) is None
    assert not [item for item in rendered({"crds.enabled": False}) if item["kind"] == "CustomResourceDefinition"]


def spans(ports: list[Object], protocol: str) -> set[int]:
    ours = (port for port in ports if port["protocol"] == protocol)
    return {number for port in ours for number in range(port["port"], port.get("endPort", port["port"]) + 1)}


@pytest.mark.parametrize("allowed", ["9012,9999-10014", "1-65535", "65535", "10-20,15-30,1", 9999], ids=str)
def test_other_ports_of_training_pods_stay_open_and_profiler_ports_are_the_operators(allowed: str | int) -> None:
    values = {"policy.allowedPorts": allowed, "networkPolicy.profilerPorts.namespaces": ["ml"]}
    policy = one(rendered(values), "NetworkPolicy", f"{RELEASE}-profiler-ports")
    everybody, operator = policy["spec"]["ingress"]
    profiler_ports = spans(operator["ports"], "TCP")
    document = json.dumps({"allowedPorts": allowed})
    assert profiler_ports == {port for port in range(1, 65536) if port in Policy.parse(document).allowed_ports}
    assert spans(everybody["ports"], "TCP") == set(range(1, 65536)) - profiler_ports
    assert "from" not in everybody
    assert operator["from"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gke-mldiagnostics"}},
            "podSelector": one(rendered(), "Deployment")["spec"]["selector"],
        }
    ]


def notes(directory: Path, values: Object) -> str:
    """What helm says after an installation; without a cluster it shows them only as part of an object."""
    chart = shutil.copytree(CHART, directory / "chart")
    text = (chart / "templates/NOTES.txt").read_text()
    frame = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata:\n  text: |-\n"
    (chart / "templates/notes.yaml").write_text(frame + textwrap.indent(text, "    "))
    said: str = one(rendered(values, chart=chart), "ConfigMap", "notes")["data"]["text"]
    return said


def test_the_capture_in_the_notes_works_as_it_is_pasted(tmp_path: Path) -> None:
    script = re.findall(r"^kubectl .*?<<END$.*?^END$", notes(tmp_path, {}), re.MULTILINE | re.DOTALL)
    typed = f"kubectl() {{ cat; }}; {script[0]}".replace("NAMESPACE", "ml").replace("NAME", "trainer")
    piped = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True)
    capture = yaml.safe_load(piped.stdout)
    read_connection(capture | {"metadata": {**capture["metadata"], "uid": "u"}})


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ({}, True),
        ({"volume.claim.enabled": True}, False),
        ({"policy.defaultStorage": "gs://bucket/profiles"}, False),
        ({"policy.defaultStorage": ""}, False),
    ],
)
def test_the_notes_warn_of_a_volume_that_does_not_last_where_profiles_go_to_it(
    values: Object, warned: bool, tmp_path: Path
) -> None:
    assert ("ends with the operator's pod" in notes(tmp_path, values)) is warned


def test_a_service_monitor_finds_the_metrics_service_and_is_off_by_default() -> None:
    assert "ServiceMonitor" not in {item["kind"] for item in rendered()}
    objects = rendered({"metrics.serviceMonitor.enabled": True, "metrics.serviceMonitor.labels": {"release": "prom"}})
    monitor, service = one(objects, "ServiceMonitor"), one(objects, "Service", f"{RELEASE}-metrics")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ["http"]
    assert [port["name"] for port in service["spec"]["ports"]] == ["http"]
    assert monitor["metadata"]["labels"]["release"] == "prom"
