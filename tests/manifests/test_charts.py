"""Charts as users get them: valid, strict about unknown keys, equal in helm, kustomize and plain YAML."""

import itertools
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from cluster.tools import tool
from cluster.versions import KUBERNETES
from release.manifests import KUSTOMIZE, NAMESPACE_FOLDER, stale
from release.parts import OPERATOR, PARTS, WEBHOOK, Part
from release.render import HOOK, Object, as_yaml, everything, helm, namespace_object, portable, rendered
from release.schemas import kubeconform, kubernetes_module
from release.version import current
from support.cluster.charts import EVERY_SWITCH, identity, one, pod_template

CLUSTER_WIDE = {
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
_FREE_OF_BOTH = ("resources", "podSecurityContext", "strategy", "metrics.dashboards.labels")
FREE = {
    OPERATOR.name: (
        "policy.allowedStorage",
        "networkPolicy.profilerPorts.podSelector",
        "diagnosis.resources",
        "view.resources",
        "view.xprof.resources",
        *_FREE_OF_BOTH,
    ),
    WEBHOOK.name: _FREE_OF_BOTH,
}
"""Values with keys that the user chooses."""
VARIANTS = [(part, variant) for part in PARTS for variant in part.variants]

each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)
each_variant = pytest.mark.parametrize(("part", "variant"), VARIANTS, ids=lambda each: getattr(each, "folder", each))


def of_kubernetes(objects: list[Object]) -> list[Object]:
    return [item for item in objects if not item["apiVersion"].startswith("cert-manager.io/")]


@each_part
def test_helm_lint_reports_nothing(part: Part) -> None:
    helm("lint", "--strict", f"--kube-version={KUBERNETES}", chart=part.chart)


@each_variant
def test_every_object_matches_its_schema(part: Part, variant: str) -> None:
    objects = of_kubernetes(rendered(part, part.variants[variant]))
    assert kubeconform(as_yaml(objects), (REPOSITORY / "crds").glob("*.yaml")) == ""


@each_part
def test_every_object_matches_its_schema_with_every_switch_changed(part: Part) -> None:
    objects = rendered(part, EVERY_SWITCH[part.name])
    assert kubeconform(as_yaml(objects), (REPOSITORY / "crds").glob("*.yaml")) == ""


@pytest.mark.parametrize("release", ["123", "1.2-rc", "true", "a" * 53])
@each_part
def test_releases_and_namespaces_may_have_every_name_that_helm_allows(part: Part, release: str) -> None:
    objects = rendered(part, release=release, namespace="42")
    assert kubeconform(as_yaml(objects), (REPOSITORY / "crds").glob("*.yaml")) == ""
    services = [item["metadata"]["name"] for item in objects if item["kind"] == "Service"]
    assert services
    assert [name for name in services if not re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)] == []


def test_a_misspelt_field_is_found() -> None:
    deployment = one(rendered(OPERATOR), "Deployment", OPERATOR.name)
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    assert "imagePullPolice" in kubeconform(as_yaml([deployment]))


def test_the_schemas_come_from_the_module_of_the_built_cluster() -> None:
    """They are kept once they are made; the module is looked up here on every machine."""
    assert (kubernetes_module() / "api/openapi-spec/swagger.json").is_file()


def test_kustomize_and_readmes_are_up_to_date() -> None:
    assert stale() == [], "run `make manifests`"


@each_variant
def test_helm_kustomize_and_plain_yaml_render_the_same_objects(part: Part, variant: str) -> None:
    values = part.variants[variant]
    by_helm = {identity(item): item for item in portable(rendered(part, values))}
    by_kustomize = {identity(item): item for item in kustomized(KUSTOMIZE / part.title(variant))}
    namespace, *by_yaml = yaml.safe_load_all(as_yaml(everything(part, values)))
    assert by_kustomize == by_helm
    assert {identity(item): item for item in by_yaml} == by_helm
    assert [namespace] == kustomized(NAMESPACE_FOLDER) == [namespace_object()]


def kustomized(folder: Path) -> list[Object]:
    command = [str(tool("kubectl")), "kustomize", str(folder)]
    built = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(yaml.safe_load_all(built))


@pytest.mark.parametrize("variant", WEBHOOK.variants)
def test_an_overlay_can_hold_both_parts_and_the_namespace(variant: str, tmp_path: Path) -> None:
    """As in the documentation: with images from a private registry."""
    parts = (NAMESPACE_FOLDER, KUSTOMIZE / OPERATOR.title(""), KUSTOMIZE / WEBHOOK.title(variant))
    registry, default = "registry.example.com/ml", "localhost/mldiagnostics"
    overlay = {
        "resources": [os.path.relpath(part, tmp_path) for part in parts],
        "images": [{"name": f"{default}/{part.name}", "newName": f"{registry}/{part.name}"} for part in PARTS],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    built = kustomized(tmp_path)
    alone = [identity(item) for part in parts for item in kustomized(part)]
    assert sorted(map(identity, built)) == sorted(alone)
    images = {pod_template(built, part)["spec"]["containers"][0]["image"] for part in PARTS}
    assert images == {f"{registry}/{part.name}:{current()}" for part in PARTS}


@each_part
def test_every_namespaced_object_names_its_namespace(part: Part) -> None:
    namespaced = [item for item in rendered(part) if item["kind"] not in CLUSTER_WIDE]
    assert {"Deployment", "Role", "RoleBinding", "Service", "ServiceAccount", "NetworkPolicy", "Pod"} <= {
        item["kind"] for item in namespaced
    }
    lasting = [item for item in namespaced if HOOK not in item["metadata"].get("annotations", {})]
    assert {item["metadata"].get("namespace") for item in lasting} == {"gke-mldiagnostics", "kube-public"}
    assert None not in {item["metadata"].get("namespace") for item in namespaced}


def test_both_parts_fit_in_one_namespace_without_shared_names_or_selectors() -> None:
    names = [{identity(item) for item in rendered(part)} for part in PARTS]
    assert not set.intersection(*names)
    selectors = [one(rendered(part), "Deployment", part.name)["spec"]["selector"]["matchLabels"] for part in PARTS]
    for part, selector in itertools.product(PARTS, selectors):
        templates = [pod_template(rendered(part), part)["metadata"]["labels"]]
        templates += [item["metadata"]["labels"] for item in rendered(part) if item["kind"] == "Pod"]
        selected = [labels for labels in templates if selector.items() <= labels.items()]
        assert len(selected) == (part.name == selector["app.kubernetes.io/name"])


def paths(tree: Any, prefix: str = "") -> set[str]:
    """Return the path of every value in values.yaml; a free-form value counts as one."""
    if not isinstance(tree, dict) or not tree:
        return {prefix}
    return {path for key, part in tree.items() for path in paths(part, f"{prefix}.{key}".lstrip("."))}


def schema_paths(schema: Object, prefix: str = "") -> set[str]:
    if not schema.get("properties"):
        return {prefix}
    parts = schema["properties"].items()
    return {path for key, part in parts for path in schema_paths(part, f"{prefix}.{key}".lstrip("."))}


def closed(schema: Object) -> bool:
    """Whether every object with named properties rejects others."""
    parts = schema.get("properties", {}).values()
    return (not parts or schema.get("additionalProperties") is False) and all(closed(part) for part in parts)


@each_part
def test_values_and_their_schema_know_the_same_keys_and_no_others(part: Part) -> None:
    values = yaml.safe_load((part.chart / "values.yaml").read_text())
    schema = json.loads((part.chart / "values.schema.json").read_text())

    def trimmed(keys: set[str]) -> set[str]:
        return {next((name for name in FREE[part.name] if path.startswith(name)), path) for path in keys}

    assert trimmed(schema_paths(schema)) == trimmed(paths(values))
    del schema["properties"]["global"]  # it also has keys of the parent chart
    assert closed(schema)


@each_part
@pytest.mark.parametrize("root", ["mldiagnosticsConnectionOperator", "diagonConnectionOperator"])
def test_values_below_the_root_of_other_charts_are_refused_with_their_place(part: Part, root: str) -> None:
    with pytest.raises(ClusterError, match=f"{root}.*move these values to the root"):
        rendered(part, {f"{root}.replicas": 1})


@each_part
def test_pods_are_restricted(part: Part) -> None:
    objects = rendered(part)
    pods = [pod_template(objects, part)["spec"], *(item["spec"] for item in objects if item["kind"] == "Pod")]
    assert len(pods) >= 2
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


@each_variant
def test_plain_manifests_do_not_mention_helm(part: Part, variant: str) -> None:
    text = as_yaml(everything(part, part.variants[variant]))
    assert "helm" not in text.lower()


@each_part
def test_a_service_monitor_selects_the_metrics_service_and_is_off_by_default(part: Part) -> None:
    assert "ServiceMonitor" not in {item["kind"] for item in rendered(part)}
    values = {"metrics.serviceMonitor.enabled": True, "metrics.serviceMonitor.labels": {"release": "prom"}}
    objects = rendered(part, values)
    monitor, service = one(objects, "ServiceMonitor", part.name), one(objects, "Service", f"{part.name}-metrics")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ["http"]
    assert [port["name"] for port in service["spec"]["ports"]] == ["http"]
    assert monitor["metadata"]["labels"]["release"] == "prom"
