"""A packaged chart installs its own version from its own registry without any value."""

from pathlib import Path

import yaml
from release.package import chart, reference
from release.render import Object, as_yaml, everything, rendered


def images(objects: list[Object]) -> set[str]:
    pods = [item["spec"]["template"]["spec"] if item["kind"] == "Deployment" else item["spec"]
            for item in objects if item["kind"] in ("Deployment", "Pod")]  # fmt: skip
    return {container["image"] for pod in pods for container in pod["containers"]}


def test_a_packaged_chart_knows_its_version_and_registry(tmp_path: Path) -> None:
    packaged = chart("1.2.3-rc.1", "registry.example.com:5000/ml/", tmp_path)
    name = reference("1.2.3-rc.1", "registry.example.com:5000/ml/")
    assert name == "registry.example.com:5000/ml/mldiagnostics-connection-operator:1.2.3-rc.1"
    assert images(rendered(chart=packaged)) == {name}
    versions = {item["metadata"]["labels"].get("app.kubernetes.io/version") for item in everything(chart=packaged)}
    assert versions == {"1.2.3-rc.1", None}  # the namespace has none


def test_packaging_changes_nothing_else(tmp_path: Path) -> None:
    packaged = chart("0.1.0", "localhost/mldiagnostics", tmp_path)
    assert rendered(chart=packaged) == rendered()


def test_a_digest_wins_over_the_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    objects = rendered({"image.digest": digest, "image.tag": "x", "image.registry": ""})
    assert images(objects) == {f"mldiagnostics-connection-operator@{digest}"}


def test_plain_yaml_reads_back_as_what_was_rendered() -> None:
    objects = everything()
    assert list(yaml.safe_load_all(as_yaml(objects))) == objects
    assert [item["kind"] for item in objects][:2] == ["Namespace", "CustomResourceDefinition"]
