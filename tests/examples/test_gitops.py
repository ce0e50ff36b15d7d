"""The examples for Argo CD and Flux: valid objects, values that render, and a project that allows the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from mldiagnostics_api.names import GROUP
from release.parts import NAMESPACE, PARTS, Part
from release.render import HOOK, Object, namespace_object, rendered
from release.schemas import kubeconform
from release.version import current
from support.cluster.foreign_definitions import definitions_of

GITOPS = Path(__file__).parents[2] / "examples/gitops"
ARGO_CD = [*yaml.safe_load_all((GITOPS / "argo-cd.yaml").read_text())]
FLUX = [*yaml.safe_load_all((GITOPS / "flux.yaml").read_text())]
REGISTRY = "registry.example.com/ml"
RELEASE_FIELDS = {
    "": {"interval", "chartRef", "install", "upgrade", "test", "driftDetection", "values"},
    "install": {"remediation"},
    "upgrade": {"remediation"},
    "remediation": {"retries", "ignoreTestFailures"},
    "test": {"enable"},
    "driftDetection": {"mode"},
}
"""Fields of a HelmRelease (v2) that the example uses. The module with its definition is not available everywhere."""


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def parts() -> dict[str, Part]:
    return {part.name: part for part in PARTS}


def values(each: Object) -> Any:
    return each["spec"].get("values") or each["spec"]["source"]["helm"]["valuesObject"]


def lasting(part: Part, of: Object) -> list[Object]:
    """Return the objects of a part with the values of an Application or HelmRelease, without those of `helm test`."""
    objects = rendered(part, values(of), release=of["metadata"]["name"], namespace=NAMESPACE)
    return [each for each in objects if HOOK not in each["metadata"].get("annotations", {})]


@pytest.mark.parametrize(
    ("project", "objects"),
    [("argo-cd", ARGO_CD), ("flux", [each for each in FLUX if each["kind"] != "HelmRelease"])],
    ids=["argo-cd", "flux"],
)
def test_objects_match_their_schemas(project: str, objects: list[Object]) -> None:
    assert kubeconform(yaml.safe_dump_all(objects), definitions_of(project)) == ""


def test_a_release_of_flux_has_the_fields_of_its_kind() -> None:
    for release in of_kind(FLUX, "HelmRelease"):
        assert release["apiVersion"] == "helm.toolkit.fluxcd.io/v2"
        spec = release["spec"]
        assert set(spec) == RELEASE_FIELDS[""]
        for field in ("install", "upgrade", "test", "driftDetection"):
            assert set(spec[field]) == RELEASE_FIELDS[field]
        for action in ("install", "upgrade"):
            assert set(spec[action]["remediation"]) == RELEASE_FIELDS["remediation"]
        assert spec["driftDetection"]["mode"] in {"enabled", "warn", "disabled"}


def test_releases_have_the_names_of_the_documentation_and_this_version() -> None:
    applications, releases = of_kind(ARGO_CD, "Application"), of_kind(FLUX, "HelmRelease")
    sources = {each["metadata"]["name"]: each["spec"] for each in of_kind(FLUX, "OCIRepository")}
    assert {each["metadata"]["name"] for each in applications} == {each["metadata"]["name"] for each in releases}
    assert {each["metadata"]["name"] for each in releases} == set(parts())
    for application in applications:
        source, destination = application["spec"]["source"], application["spec"]["destination"]
        assert (source["chart"], source["targetRevision"]) == (application["metadata"]["name"], current())
        assert (source["repoURL"], destination["namespace"]) == (f"{REGISTRY}/charts", NAMESPACE)
    for release in releases:
        name = release["metadata"]["name"]
        assert release["metadata"]["namespace"] == NAMESPACE
        assert release["spec"]["chartRef"] == {"kind": "OCIRepository", "name": name}
        assert sources[name]["url"] == f"oci://{REGISTRY}/charts/{name}"
        assert sources[name]["ref"] == {"tag": current()}


def test_both_have_the_same_values_and_namespace() -> None:
    applications = {each["metadata"]["name"]: values(each) for each in of_kind(ARGO_CD, "Application")}
    assert applications == {each["metadata"]["name"]: values(each) for each in of_kind(FLUX, "HelmRelease")}
    labels = namespace_object()["metadata"]["labels"]
    [namespace] = of_kind(FLUX, "Namespace")
    assert namespace == namespace_object()
    managed = [each["spec"]["syncPolicy"].get("managedNamespaceMetadata") for each in of_kind(ARGO_CD, "Application")]
    assert [each for each in managed if each] == [{"labels": labels}]


@pytest.mark.parametrize("of", of_kind(ARGO_CD, "Application"), ids=lambda of: of["metadata"]["name"])
def test_the_project_allows_every_object(of: Object) -> None:
    [project] = of_kind(ARGO_CD, "AppProject")
    allowed = {(each["group"], each["kind"]) for each in project["spec"]["clusterResourceWhitelist"]}
    namespaces = {each["namespace"] for each in project["spec"]["destinations"]}
    objects = lasting(parts()[of["metadata"]["name"]], of)
    assert objects
    for each in objects:
        group, _, _ = each["apiVersion"].rpartition("/")
        namespace = each["metadata"].get("namespace")
        assert namespace in namespaces if namespace else (group, each["kind"]) in allowed, each["metadata"]["name"]
        assert group != GROUP, "custom resources are not part of a chart"
    assert of["spec"]["project"] == project["metadata"]["name"]
    assert of["spec"]["source"]["repoURL"] in project["spec"]["sourceRepos"]
