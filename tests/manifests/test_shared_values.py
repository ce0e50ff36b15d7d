"""Values that both charts have and treat alike."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from release.parts import OPERATOR, PARTS, WEBHOOK, Part
from release.render import Object, as_yaml, rendered
from release.schemas import kubeconform
from release.version import current
from support.cluster.charts import EVERY_SWITCH, environment, one, pod_template, with_older_values

each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)

PREFIXES = {OPERATOR.name: "mldiag.", WEBHOOK.name: "mldiag-injection."}
SHARED = (
    "_common.tpl",
    "alerts.yaml",
    "dashboards.yaml",
    "extraobjects.yaml",
    "metrics.yaml",
    "poddisruptionbudget.yaml",
    "serviceaccount.yaml",
)
"""Templates that are equal in both charts except for the prefix of template names."""
IDS = {"runAsUser", "runAsGroup", "fsGroup"}


def pods(part: Part, values: Object) -> list[Object]:
    """Return the pods of the Deployment and of `helm test`."""
    objects = rendered(part, values)
    return [pod_template(objects, part), *(item for item in objects if item["kind"] == "Pod")]


def security(part: Part, values: Object) -> list[Object]:
    return [pod["spec"]["securityContext"] for pod in pods(part, values)]


@pytest.mark.parametrize("name", SHARED)
def test_shared_templates_differ_only_in_their_prefix(name: str) -> None:
    texts = {(part.chart / "templates" / name).read_text().replace(PREFIXES[part.name], "P.") for part in PARTS}
    assert len(texts) == 1


@each_part
def test_no_template_is_defined_twice(part: Part) -> None:
    """Helm silently keeps one of two definitions, which depends on the names of their files."""
    texts = (file.read_text() for file in (part.chart / "templates").glob("*.tpl"))
    names = [name for text in texts for name in re.findall(r'define "([^"]+)"', text)]
    assert sorted(names) == sorted(set(names))


def leaves(schema: Object, prefix: str = "") -> dict[str, Object]:
    """Return the schema of every value by its path."""
    if not schema.get("properties"):
        return {prefix: schema}
    parts = schema["properties"].items()
    return {path: leaf for key, part in parts for path, leaf in leaves(part, f"{prefix}.{key}".lstrip(".")).items()}


def test_shared_values_have_the_same_schema() -> None:
    schemas = [leaves(json.loads((part.chart / "values.schema.json").read_text())) for part in PARTS]
    both = set.intersection(*map(set, schemas))
    assert {"enabled", "global.imageRegistry", "commonLabels", "extraObjects"} <= both
    assert {path for path in both if schemas[0][path] != schemas[1][path]} == {"replicas"}  # null: by the volume


@each_part
def test_a_disabled_chart_renders_nothing(part: Part) -> None:
    assert rendered(part, EVERY_SWITCH[part.name] | {"enabled": False}) == []


@each_part
def test_reused_values_of_an_older_chart_render_like_the_defaults(part: Part, tmp_path: Path) -> None:
    assert rendered(part, chart=with_older_values(part, tmp_path)) == rendered(part)


@each_part
def test_the_registry_of_an_umbrella_chart_overrides_the_own_one(part: Part) -> None:
    values = {"global.imageRegistry": "registry.example.com/ml/", "global.other": {"chart": 1}}
    for pod in pods(part, values):
        (container,) = pod["spec"]["containers"]
        assert container["image"] == f"registry.example.com/ml/{part.name}:{current()}"


@each_part
@pytest.mark.parametrize("value", [None, False], ids=str)
def test_without_a_security_context_no_id_is_fixed(part: Part, value: Any) -> None:
    """OpenShift assigns ids per namespace and rejects others; Pod Security `restricted` still applies."""
    for context in security(part, {"podSecurityContext": value}):
        assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


@each_part
@pytest.mark.parametrize("value", [None, False], ids=str)
def test_one_id_can_be_left_out(part: Part, value: Any) -> None:
    (default, *_) = security(part, {})
    assert default.keys() >= IDS
    values = {"podSecurityContext.runAsUser": value, "podSecurityContext.fsGroup": value}
    for context in security(part, values):
        assert context == {key: kept for key, kept in default.items() if key not in {"runAsUser", "fsGroup"}}


@each_part
def test_large_ids_stay_integers(part: Part) -> None:
    assert {context["runAsUser"] for context in security(part, {"podSecurityContext.runAsUser": 1000650000})} == {
        1000650000
    }


@each_part
def test_common_labels_are_on_every_object_and_in_no_selector(part: Part) -> None:
    values = EVERY_SWITCH[part.name] | {"commonLabels": {"team": "ml", "cost-centre": "42"}, "extraObjects": []}
    objects = rendered(part, values)
    for item in [*objects, pod_template(objects, part)]:
        assert item["metadata"]["labels"].items() >= {"team": "ml", "cost-centre": "42"}.items(), item["kind"]
    selector = one(objects, "Deployment", part.name)["spec"]["selector"]["matchLabels"]
    assert selector == one(rendered(part), "Deployment", part.name)["spec"]["selector"]["matchLabels"]


@each_part
def test_pod_labels_override_common_labels(part: Part) -> None:
    values = {"commonLabels": {"team": "ml"}, "podLabels": {"team": "infra", "app.kubernetes.io/part-of": "x"}}
    labels = pod_template(rendered(part, values), part)["metadata"]["labels"]
    assert (labels["team"], labels["app.kubernetes.io/part-of"]) == ("infra", "x")


@each_part
def test_extra_objects_are_rendered_unchanged(part: Part) -> None:
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules"}, "data": {"a": "{{ $labels.pod }}"}}
    assert one(rendered(part, {"extraObjects": [extra]}), "ConfigMap", "rules") == extra


@each_part
def test_extra_volumes_are_mounted(part: Part) -> None:
    values = {
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    }
    pod = pod_template(rendered(part, values), part)["spec"]
    assert {"name": "more", "emptyDir": {}} in pod["volumes"]
    assert {"name": "more", "mountPath": "/more"} in pod["containers"][0]["volumeMounts"]
    assert kubeconform(as_yaml(rendered(part, values)), (REPOSITORY / "crds").glob("*.yaml")) == ""


@each_part
def test_a_variable_that_the_chart_sets_is_rejected_by_name(part: Part) -> None:
    for name in environment(rendered(part), part):
        with pytest.raises(ClusterError, match=f"extraEnv: the chart sets '{name}' itself; remove it"):
            rendered(part, {"extraEnv": [{"name": "MINE", "value": "1"}, {"name": name, "value": "1"}]})


@each_part
def test_a_strategy_of_the_user_replaces_the_default(part: Part) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}
    assert one(rendered(part, {"strategy": strategy}), "Deployment", part.name)["spec"]["strategy"] == strategy


@each_part
def test_without_rbac_no_role_or_binding_is_rendered(part: Part) -> None:
    kinds = {item["kind"] for item in rendered(part, EVERY_SWITCH[part.name] | {"rbac.create": False})}
    assert "Deployment" in kinds
    assert kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} == set()


@each_part
@pytest.mark.parametrize("name", ["42", "true", "1e5", "null"])
def test_names_that_look_like_other_types_stay_strings(part: Part, name: str) -> None:
    values: Object = {"priorityClassName": name, "serviceAccount.name": name}
    if part is OPERATOR:
        values |= {"volume.existingClaim": name, "watch.namespaces": [name]}
        values |= {"networkPolicy.profilerPorts.namespaces": [name]}
    objects = rendered(part, values)
    assert kubeconform(as_yaml(objects), (REPOSITORY / "crds").glob("*.yaml")) == ""
    assert pod_template(objects, part)["spec"]["serviceAccountName"] == name
    assert one(objects, "ServiceAccount", name)


@each_part
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"enabled": "no"}, "enabled"),
        ({"commonLabels": {"app.kubernetes.io/name": "x"}}, "commonLabels: the chart sets the label 'app"),
        ({"commonLabels": {"helm.sh/chart": "x"}}, "commonLabels: the chart sets the label 'helm.sh/chart'"),
        ({"podLabels": {"app.kubernetes.io/instance": "x"}}, "podLabels: the chart sets the label"),
        ({"commonLabels": {"team": "two words"}}, "commonLabels"),
        ({"podSecurityContext": True}, "podSecurityContext"),
        ({"podSecurityContext.runAsUser": "root"}, "runAsUser"),
        ({"strategy": {"type": "recreate"}}, "strategy"),
        ({"strategy": {"maxSurge": 1}}, "strategy"),
        ({"resources.limits": {"memory": "1 Gi"}}, "memory"),
        ({"resources.limit": {"memory": "1Gi"}}, "limit"),
        ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, "imagePullSecrets"),
        ({"extraEnv": [{"name": "A"}, {"name": "A", "value": "1"}]}, "extraEnv: 'A' is set twice"),
        ({"extraEnv": [{"value": "1"}]}, "extraEnv"),
        ({"extraVolumes": [{"emptyDir": {}}]}, "extraVolumes"),
        ({"extraObjects": [{"kind": "ConfigMap"}]}, "extraObjects"),
        ({"metrics.serviceMonitor.interval": "30 s"}, "interval"),
        ({"fullnameOverride": "true"}, "fullnameOverride"),
        ({"global.imageRegistry": 5}, "imageRegistry"),
    ],
    ids=str,
)  # fmt: skip
def test_invalid_values_are_rejected_by_name(part: Part, values: Object, words: str) -> None:
    with pytest.raises(ClusterError, match=re.escape(words)):
        rendered(part, values)
