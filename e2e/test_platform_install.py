"""Values for platforms on an API server: umbrella charts, OpenShift, upgrades."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cluster.envtest import ApiServer, apiserver
from cluster.versions import KUBERNETES
from release.parts import NAMESPACE, OPERATOR, PARTS, WEBHOOK, Part
from release.render import Object, rendered, setting
from release_scene import Release, wanted
from support.cluster.charts import EVERY_SWITCH, UMBRELLA, one, umbrella, with_older_values
from support.cluster.impersonation import Requests, until

pytestmark = pytest.mark.apiserver

each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with apiserver(controller_manager=True) as running:
        yield running


@pytest.fixture
def requests(server: ApiServer) -> Iterator[Requests]:
    """Requests to the server; all releases are removed after the test."""
    requests = Requests(server.kubeconfig)
    yield requests
    for release in (Release(server, part) for part in (*PARTS, UMBRELLA)):
        release.uninstall("--ignore-not-found")
        until(lambda release=release: not release.installed(requests), "nothing is left")  # type: ignore[misc]


def options(values: Object) -> list[str]:
    return [argument for key, value in values.items() for argument in ("--set-json", setting(key, value))]


def removable(part: Part) -> Object:
    """Return values with which uninstalling removes all objects."""
    return {"crds.keep": False} if part is OPERATOR else {}


def deployment(requests: Requests, part: Part) -> Object:
    body: Object = requests("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{part.name}").body
    return body


def test_an_umbrella_chart_installs_both_and_removes_one(server: ApiServer, requests: Requests, tmp_path: Path) -> None:
    values: Object = {part.name: {"podSecurityContext": None, "commonLabels": {"team": "ml"}} for part in PARTS}
    values[OPERATOR.name]["crds"] = {"keep": False}
    chart = umbrella(tmp_path, values)
    release = Release(server, UMBRELLA)
    release.helm("install", "--create-namespace", chart=chart)
    assert release.installed(requests) == wanted(rendered(UMBRELLA, chart=chart))

    without = {f"{WEBHOOK.name}.enabled": False}
    release.helm("upgrade", *options(without), chart=chart)
    left = wanted(rendered(UMBRELLA, without, chart=chart))
    assert left
    assert release.installed(requests) == left


@each_part
def test_the_api_server_accepts_every_switch(part: Part, server: ApiServer, requests: Requests) -> None:
    values = EVERY_SWITCH[part.name] | removable(part)
    for namespace in ("ml", "research"):
        requests("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    release = Release(server, part)
    release.helm("install", "--create-namespace", *options(values))
    expected = one(rendered(part, values), "Deployment", part.name)["spec"]["template"]["spec"]
    installed = deployment(requests, part)["spec"]["template"]["spec"]
    fields = {"hostNetwork", "dnsPolicy", "securityContext", "serviceAccountName"} & expected.keys()
    assert {field: installed[field] for field in fields} == {field: expected[field] for field in fields}


def test_an_upgrade_changes_to_recreate_and_back(server: ApiServer, requests: Requests) -> None:
    """The API server rejects Recreate together with its defaults for a rolling update."""
    one_node: Object = {"volume.claim.enabled": True, "volume.claim.accessModes": ["ReadWriteOnce"]}
    release = Release(server, OPERATOR)
    release.helm("install", "--create-namespace", *options(removable(OPERATOR)))
    assert deployment(requests, OPERATOR)["spec"]["strategy"]["type"] == "RollingUpdate"
    release.helm("upgrade", *options(removable(OPERATOR) | one_node))
    assert deployment(requests, OPERATOR)["spec"]["strategy"] == {"type": "Recreate"}
    release.helm("upgrade", *options(removable(OPERATOR)))
    assert deployment(requests, OPERATOR)["spec"]["strategy"]["type"] == "RollingUpdate"


@each_part
def test_an_older_release_keeps_its_values_and_its_objects(
    part: Part, server: ApiServer, requests: Requests, tmp_path: Path
) -> None:
    release = Release(server, part)
    chart = with_older_values(part, tmp_path)
    release.helm("install", "--create-namespace", *options(removable(part) | {"replicas": 4}), chart=chart)
    release.helm("upgrade", "--reuse-values")
    assert release.installed(requests) == wanted(rendered(part))
    upgraded = deployment(requests, part)["spec"]
    assert upgraded["replicas"] == 4
    expected = one(rendered(part), "Deployment", part.name)["spec"]["template"]["spec"]
    assert upgraded["template"]["spec"]["securityContext"] == expected["securityContext"]


@each_part
def test_roles_printed_by_the_chart_equal_those_it_would_create(
    part: Part, server: ApiServer, requests: Requests
) -> None:
    """As in docs/install.md for `rbac.create: false`."""
    release = Release(server, part)
    release.helm("install", "--create-namespace", *options(removable(part) | {"rbac.create": False}))
    roles = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    everything = wanted(rendered(part))
    assert release.installed(requests) == {(kind, name) for kind, name in everything if kind not in roles}
    pages = [f"--show-only=templates/{name}.yaml" for name in (["rbac", "userroles"] if part is OPERATOR else ["rbac"])]
    printed = [
        item for item in yaml.safe_load_all(release.helm("template", f"--kube-version={KUBERNETES}", *pages)) if item
    ]
    assert wanted(printed) == {(kind, name) for kind, name in everything if kind in roles}
