"""A packaged chart installs its own version from its own registry without any value."""

from pathlib import Path

import pytest
import yaml
from release.package import chart, reference
from release.parts import PARTS, Part
from release.render import Object, as_yaml, everything, helm, rendered
from release.version import current

each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)


def images(objects: list[Object]) -> set[str]:
    pods = [item["spec"]["template"]["spec"] if item["kind"] == "Deployment" else item["spec"]
            for item in objects if item["kind"] in ("Deployment", "Pod")]  # fmt: skip
    return {container["image"] for pod in pods for container in pod["containers"]}


@each_part
def test_a_packaged_chart_has_its_version_and_registry_as_defaults(part: Part, tmp_path: Path) -> None:
    packaged = chart(part, "1.2.3-rc.1", "registry.example.com:5000/ml/", tmp_path)
    name = reference(part, "1.2.3-rc.1", "registry.example.com:5000/ml/")
    assert name == f"registry.example.com:5000/ml/{part.name}:1.2.3-rc.1"
    assert images(rendered(part, chart=packaged)) == {name}
    versions = {
        item["metadata"]["labels"].get("app.kubernetes.io/version") for item in everything(part, chart=packaged)
    }
    assert versions == {"1.2.3-rc.1", None}  # None: the namespace


@each_part
def test_a_packaged_chart_names_its_image_and_source(part: Part, tmp_path: Path) -> None:
    packaged = chart(part, "1.2.3", "registry.example.com/ml", tmp_path, "https://git.example.com/ml/mldiagnostics")
    about = yaml.safe_load(helm("show", "chart", chart=packaged))
    assert about["home"] == "https://git.example.com/ml/mldiagnostics"
    assert about["sources"] == [about["home"]]
    (image,) = yaml.safe_load(about["annotations"]["artifacthub.io/images"])
    assert image["image"] == reference(part, "1.2.3", "registry.example.com/ml")
    readme = helm("show", "readme", chart=packaged)
    assert f"`{image['image']}`" in readme
    assert about["home"] in readme
    assert "localhost" not in readme


@each_part
def test_packaging_changes_nothing_else(part: Part, tmp_path: Path) -> None:
    packaged = chart(part, current(), "localhost/mldiagnostics", tmp_path)
    assert rendered(part, chart=packaged) == rendered(part)


@each_part
def test_a_digest_overrides_the_tag(part: Part) -> None:
    digest = f"sha256:{'0' * 64}"
    objects = rendered(part, {"image.digest": digest, "image.tag": "x", "image.registry": ""})
    assert images(objects) == {f"{part.name}@{digest}"}


@each_part
def test_plain_yaml_parses_to_the_rendered_objects(part: Part) -> None:
    objects = everything(part)
    assert list(yaml.safe_load_all(as_yaml(objects))) == objects
    kinds = [item["kind"] for item in objects]
    assert kinds[0] == "Namespace"
    needs = [kinds.index(kind) for kind in ("CustomResourceDefinition", "ServiceAccount") if kind in kinds]
    assert max(needs) < kinds.index("Deployment")
    assert "MutatingWebhookConfiguration" not in kinds[:-1]
