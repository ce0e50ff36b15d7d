"""The web view as a Deployment: behind a proxy viewers see what RBAC shows them, without one all runs."""

import gzip
import json
import secrets
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit

import claim_scene
import pytest
from cluster import images
from cluster.paths import REPOSITORY
from cluster.provider import Provider
from demo import injecting, installation
from demo.installation import NAMESPACE as INSTALLED
from demo.kubectl import Kubectl, eventually
from demo.on_cluster import HOSTS, start_training
from forwarding import forwarded
from injection_scene import temporary_namespace
from release.parts import COMMAND_LINE, OPERATOR, XPROF
from scene import RESOURCE

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

NAMESPACE = f"e2e-view-{secrets.token_hex(2)}"
VIEW = f"{OPERATOR.name}-web-view"
URL = "https://view.example.com"
SECRET = secrets.token_hex(16)
DEADLINE_S = 120
PROXY = {
    "view.proxy.userHeader": "X-Forwarded-User",
    "view.proxy.groupsHeader": "X-Forwarded-Groups",
    "view.proxy.secretName": "view-proxy",
}


InstallView = Callable[[Mapping[str, Any]], None]


@pytest.fixture(scope="module")
def operator_values(claim: str) -> dict[str, Any]:
    """Values of an operator whose volume is a claim, which the view reads too."""
    return claim_scene.values(claim) | {"view.mountVolume": True}


@pytest.fixture(scope="module")
def prepared_view(running_cluster: Provider, kubectl: Kubectl, operator: None) -> None:  # noqa: ARG001 - makes the namespace
    """Load the images of the view, which is that of the command line, and of XProf; create the secret of the proxy."""
    for image in (COMMAND_LINE, XPROF):
        images.load(images.build(image.dockerfile, REPOSITORY, image.default_image), running_cluster)
    metadata = {"name": "view-proxy", "namespace": INSTALLED}
    kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"secret": SECRET}})


@pytest.fixture(scope="module")
def install_view(
    kubectl: Kubectl,
    operator_image: list[str],
    operator_values: dict[str, Any],
    helm: installation.Helm,
    prepared_view: None,  # noqa: ARG001 - must exist
) -> InstallView:
    """Return what installs the view of the operator with further values, and waits until it alone serves."""

    def install(values: Mapping[str, Any]) -> None:
        chosen = installation.settings({**operator_values, "view.enabled": True, "view.url": URL, **values})
        installation.install(OPERATOR, helm, [*operator_image, *chosen])
        injecting.until_replaced(kubectl, VIEW)

    return install


@pytest.fixture(scope="module")
def training(kubectl: Kubectl, prepared: None, operator: None, webhook: None) -> Iterator[list[str]]:  # noqa: ARG001 - must exist
    """Run the example's JobSet with pods that are injected: the view finds the pods of a run by their label."""
    with temporary_namespace(kubectl, NAMESPACE, {}):
        yield start_training(kubectl, NAMESPACE)


@dataclass(frozen=True, slots=True)
class Browser:
    """Requests to the view through a forwarded port."""

    port: int
    headers: Mapping[str, str] = field(default_factory=dict)

    def logged_in(self, user: str, groups: str = "") -> "Browser":
        """Return the browser of a user, whose requests the proxy has completed."""
        named = {"X-Forwarded-User": user, "X-Forwarded-Groups": groups, "X-Mldiag-Proxy-Secret": SECRET}
        return Browser(self.port, named)

    def get(self, path: str) -> tuple[int, str, str]:
        """Return the status, the final path and the body of a response."""
        return self._send(path, None)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Send a body as the page would; return the status and the document of the response."""
        status, _, document = self._send(path, json.dumps(body).encode())
        return status, json.loads(document)

    def _send(self, path: str, body: bytes | None) -> tuple[int, str, str]:
        headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                content = response.read()
                is_packed = response.headers["Content-Encoding"] == "gzip"
                body = gzip.decompress(content) if is_packed else content
                return response.status, unquote(urlsplit(response.url).path), body.decode()
        except HTTPError as error:
            return error.code, path, error.read().decode()

    def runs(self) -> set[str]:
        """Return the namespaces of the listed runs."""
        status, _, body = self.get("/api/runs")
        assert status == 200, body
        return {run["namespace"] for run in json.loads(body)["runs"]}


@contextmanager
def browsing(kubectl: Kubectl) -> Iterator[Browser]:
    """Yield a browser on a forwarded port of the view."""
    with forwarded(kubectl, INSTALLED, f"deployment/{VIEW}", [8425]) as [port]:
        yield Browser(port)


def test_a_viewer_behind_a_proxy_sees_the_runs_of_their_namespaces(
    kubectl: Kubectl, training: list[str], install_view: InstallView
) -> None:
    install_view(PROXY)
    run = run_with_link(kubectl)
    grant(kubectl, "view", group="research")
    with browsing(kubectl) as anybody:
        assert anybody.get("/api/runs")[0] == 401
        jane, mallory = anybody.logged_in("jane", "research"), anybody.logged_in("mallory")
        eventually(lambda: NAMESPACE in jane.runs(), "the run in the view", deadline_s=DEADLINE_S)
        assert jane.runs() == {NAMESPACE}
        assert mallory.runs() == set()
        address = run["status"]["url"].removeprefix(URL)
        status, path, page = jane.get(address)
        assert (status, path) == (200, f"/runs/cluster/{NAMESPACE}:{run['metadata']['name']}")
        assert "<title>" in page
        assert mallory.get(address)[0] == 404
        status, _, document = jane.get(f"/api{path}")
        assert status == 200, document
        assert {host["pod"] for host in json.loads(document)["hosts"]} == set(training)


@pytest.mark.usefixtures("training")
def test_a_viewer_captures_from_the_page_and_shares_the_session_in_xprof(
    kubectl: Kubectl, install_view: InstallView
) -> None:
    install_view({**PROXY, "view.captures": True, "view.xprof.enabled": True, "view.xprof.cacheGiB": 1})
    run = run_with_link(kubectl)
    grant(kubectl, "admin", group="trainers")
    grant(kubectl, "view", group="guests")
    order = {"orderId": "0123456789", "ranks": [0, 1], "durationMilliseconds": 1000}
    path = f"/api/runs/cluster/{NAMESPACE}:{run['metadata']['name']}"
    with browsing(kubectl) as anybody:
        jane, guest = anybody.logged_in("jane", "trainers"), anybody.logged_in("guest", "guests")

        def capturable() -> bool:
            document = json.loads(jane.get(path)[2])
            return bool(document.get("canCapture")) and len(document["hosts"]) == HOSTS

        eventually(capturable, "both hosts in the view", deadline_s=DEADLINE_S)
        eventually(lambda: guest.get(path)[0] == 200, "the run for a guest", deadline_s=DEADLINE_S)
        assert guest.post(f"{path}/captures", order)[0] == 403
        assert kubectl.items(RESOURCE, f"--namespace={NAMESPACE}") == []
        status, made = jane.post(f"{path}/captures", order)
        assert status == 201, made

        def completed() -> dict[str, Any] | None:
            document: dict[str, Any] = json.loads(jane.get(f"{path}/captures/{made['name']}")[2])
            return document if document["isComplete"] else None

        done = eventually(completed, "the end of the capture", deadline_s=DEADLINE_S)
        assert (done["phase"], done["captured"], done["total"]) == ("Succeeded", HOSTS, HOSTS), done

        def is_listed() -> bool:
            return done["session"] in {each["session"] for each in json.loads(jane.get(path)[2])["sessions"]}

        eventually(is_listed, "the session in the list of the run", deadline_s=DEADLINE_S)

        def link() -> str | None:
            status, document = jane.post(f"{path}/sessions/{done['session']}/xprof", {})
            return document["url"] if status == 200 else None

        shared = eventually(link, "the link of the session in XProf", deadline_s=DEADLINE_S)
        base = shared.partition("overview_page")[0]
        hosts = f"{base}hosts?run={done['session']}&tag=trace_viewer"

        def shown() -> set[str]:
            status, _, body = guest.get(hosts)
            return {each["hostname"] for each in json.loads(body)} if status == 200 else set()

        assert len(eventually(shown, "the hosts in XProf", deadline_s=DEADLINE_S) - {"ALL_HOSTS"}) == HOSTS
        assert guest.get(f"{base}hosts?run=other&tag=trace_viewer")[0] == 404
        assert anybody.logged_in("mallory").get(hosts)[0] == 404
        pods = kubectl.items("pods", f"--namespace={INSTALLED}", f"--selector=app.kubernetes.io/name={VIEW}")
        command = ("exec", pods[0]["metadata"]["name"], f"--namespace={INSTALLED}", "-c", "xprof", "--", "python", "-c")
        listed = kubectl(*command, "import os; print(os.path.exists('/var/run/secrets/kubernetes.io'))")
        assert listed.strip() == "False"


@pytest.mark.usefixtures("training")
def test_without_a_proxy_it_is_reached_by_port_forward_only(kubectl: Kubectl, install_view: InstallView) -> None:
    install_view({})
    assert not kubectl.exists("service", VIEW, f"--namespace={INSTALLED}")
    with browsing(kubectl) as browser:
        eventually(lambda: NAMESPACE in browser.runs(), "the run in the view", deadline_s=DEADLINE_S)
        assert "<title>" in browser.get("/")[2]


def run_with_link(kubectl: Kubectl) -> dict[str, Any]:
    """Return the run of the example's JobSet, once its status has a link."""

    def poll() -> dict[str, Any] | None:
        runs = kubectl.items("mlruns", f"--namespace={NAMESPACE}")
        mine = (run for run in runs if run.get("status", {}).get("workload") == "JobSet/training")
        return next((run for run in mine if run["status"].get("url")), None)

    return eventually(poll, "the link of the run", deadline_s=DEADLINE_S)


def grant(kubectl: Kubectl, role: str, *, group: str) -> None:
    """Bind a group to one of Kubernetes' own roles in the namespace; the chart adds runs and captures to them."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
    metadata = {"name": f"{group}-{role}", "namespace": NAMESPACE}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata}
    kubectl.apply(binding | {"roleRef": reference, "subjects": [subject]})
