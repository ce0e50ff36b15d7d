"""Both charts as dependencies of one parent chart, as platform teams install them."""

from pathlib import Path
from typing import Any

import pytest
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from release.parts import OPERATOR, PARTS, WEBHOOK, Part
from release.render import HOOK, Object, as_yaml, rendered
from release.schemas import kubeconform
from release.version import current
from support.cluster.charts import UMBRELLA, identity, umbrella


def objects_of(chart: Path, values: Object | None = None, release: str = "") -> list[Object]:
    return rendered(UMBRELLA, values, release=release, chart=chart)


def of_chart(objects: list[Object], part: Part) -> list[Object]:
    """Return the objects of a part; those of `helm test` have a name with the suffix `-test`."""
    labels = [(item, item["metadata"]["labels"]["app.kubernetes.io/name"]) for item in objects]
    return [item for item, name in labels if name.removesuffix("-test") == part.name]


def pods(objects: list[Object]) -> list[Object]:
    specs = [item["spec"].get("template", item)["spec"] for item in objects if item["kind"] in {"Deployment", "Pod"}]
    assert len(specs) == 5  # two Deployments, two pods of `helm test` for the operator and one for the webhook
    return specs


@pytest.mark.parametrize("release", ["", "p" * 33, "1" * 33, "p" * 34, "p" * 53, "1.2-" + "p" * 49])
def test_both_charts_render_under_one_release_without_sharing_names(release: str, tmp_path: Path) -> None:
    objects = objects_of(umbrella(tmp_path, {}), release=release)
    lasting = [item for item in objects if HOOK not in item["metadata"].get("annotations", {})]
    assert len({identity(item) for item in lasting}) == len(lasting)
    assert sum(len(of_chart(objects, part)) for part in PARTS) == len(objects)
    assert kubeconform(as_yaml(objects), (REPOSITORY / "crds").glob("*.yaml")) == ""


def test_a_chart_renders_the_same_objects_alone_and_under_a_parent(tmp_path: Path) -> None:
    """A release can move into an umbrella chart under the same name and keep its claim."""
    operator = {"volume": {"claim": {"enabled": True}}}
    chart = umbrella(tmp_path, {WEBHOOK.name: {"enabled": False}, OPERATOR.name: operator})
    alone = rendered(OPERATOR, {"volume.claim.enabled": True})
    assert objects_of(chart, release=OPERATOR.name) == alone


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)
@pytest.mark.parametrize("conditions", [True, False], ids=["with conditions", "without"])
def test_one_chart_can_be_disabled(part: Part, conditions: bool, tmp_path: Path) -> None:
    chart = umbrella(tmp_path, {part.name: {"enabled": False}}, conditions=conditions)
    objects = objects_of(chart)
    (other,) = (each for each in PARTS if each is not part)
    assert objects
    assert of_chart(objects, other) == objects


def test_one_registry_serves_both_charts(tmp_path: Path) -> None:
    chart = umbrella(tmp_path, {"global": {"imageRegistry": "registry.example.com/ml", "team": "of the parent"}})
    images = {container["image"] for pod in pods(objects_of(chart)) for container in pod["containers"]}
    assert images == {f"registry.example.com/ml/{part.name}:{current()}" for part in PARTS}


@pytest.mark.parametrize("value", [None, False], ids=str)
@pytest.mark.parametrize("where", ["values.yaml", "--set-json"])
def test_ids_can_be_left_to_openshift(where: str, value: Any, tmp_path: Path) -> None:
    given = {part.name: {"podSecurityContext": value} for part in PARTS} if where == "values.yaml" else {}
    changed = {f"{part.name}.podSecurityContext": value for part in PARTS} if where == "--set-json" else {}
    for pod in pods(objects_of(umbrella(tmp_path, given), changed)):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_a_misspelt_value_is_rejected_with_the_name_of_its_chart(tmp_path: Path) -> None:
    chart = umbrella(tmp_path, {WEBHOOK.name: {"replica": 1}})
    with pytest.raises(ClusterError, match=rf"(?s){WEBHOOK.name}.*replica"):
        objects_of(chart)
