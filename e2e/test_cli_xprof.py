"""`mldiag capture`, `profiles` and `xprof` on a cluster: from a claim and from buckets to a page of XProf."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import bucket_servers
import claim_scene
import pytest
from cluster import images
from cluster.paths import REPOSITORY
from cluster.provider import Provider
from demo import capturing
from demo.command_line import MLDIAG, mldiag
from demo.installation import NAMESPACE as OPERATORS
from demo.kubectl import Kubectl, eventually
from release.parts import XPROF
from scene import NAMESPACE
from support.servers.object_servers import ObjectServer
from viewer import hosts_in_xprof, hosts_served

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

SHORT = "short"


@pytest.fixture(scope="module")
def operator_values(claim: str, kubectl: Kubectl) -> dict[str, Any]:
    """Values of an operator whose volume is a claim, with keys of buckets."""
    kubectl.apply(bucket_servers.keys(OPERATORS))
    return claim_scene.values(claim) | {"buckets.secretName": bucket_servers.NAME}


@pytest.fixture(scope="module")
def buckets(running_cluster: Provider, kubectl: Kubectl, namespace: str) -> Iterator[dict[str, ObjectServer]]:
    """Servers of buckets in the namespace of the captures, whose keys the operator and XProf have."""
    assert namespace == NAMESPACE
    with bucket_servers.bucket_servers(running_cluster, kubectl) as servers:
        yield servers


@pytest.fixture(scope="module")
def xprof_image(running_cluster: Provider) -> str:
    """Load the image of XProf's server and return its name."""
    images.load(images.build(XPROF.dockerfile, REPOSITORY, XPROF.default_image), running_cluster)
    return XPROF.default_image


def test_a_capture_on_the_operators_claim_is_downloaded_and_opened_in_xprof(
    running_cluster: Provider, kubectl: Kubectl, training: list[str], xprof_image: str, tmp_path: Path
) -> None:
    env = {"KUBECONFIG": str(running_cluster.kubeconfig)}

    def document(*arguments: str) -> Any:
        return json.loads(mldiag([*arguments, "-o", "json"], env))

    def state(server: str) -> str:
        servers = document("xprof", "list", "-n", OPERATORS)
        return next(str(each["state"]) for each in servers if each["name"] == server)

    capture = ("capture", "jobset/training", "--duration", "500ms", "--log-directory", "volume:///e2e/shown", "--wait")
    captured = document(*capture, "-n", NAMESPACE)
    directory, session = captured["directory"], captured["session"]
    capturing.until_diagnosed(kubectl, NAMESPACE, Path(captured["object"]).name, deadline_s=120)
    [copied] = document("profiles", "download", f"{directory}/{session}", "--to", str(tmp_path), "-n", NAMESPACE)
    assert (copied["session"], copied["files"]) == (session, 6), "two traces, their summaries, record and diagnosis"
    traces = (tmp_path / "plugins/profile" / session).glob("*.xplane.pb")
    stored = {target["pod"]: target["bytes"] for target in captured["targets"]}
    assert {path.name.removesuffix(".xplane.pb"): path.stat().st_size for path in traces} == stored

    where = ("-n", OPERATORS)
    create = ("xprof", "create", directory, "--on", "kubernetes", "--image", xprof_image, "--claim", claim_scene.NAME)
    [made] = document(*create, "--memory", "1Gi", *where)
    assert (made["state"], made["logDirectory"]) == ("Running", directory)
    try:
        assert [each["name"] for each in document(*create, *where)] == [made["name"]], "the first is shown"
        assert document("xprof", "list", *where) == [made]
        # It ends while the other one is read; the probes of the kubelet go on until then.
        document(*create, "--new", "--name", SHORT, "--idle-after", "30s", "--memory", "1Gi", "--no-wait", *where)
        with connected(made["name"], env) as port:
            assert hosts_served(port, session) == set(training)
            pods = f"--selector=app.kubernetes.io/name=mldiag-xprof,app.kubernetes.io/instance={made['name']}"
            kubectl("delete", "pod", pods, f"--namespace={OPERATORS}", "--force", "--grace-period=0")
            assert hosts_served(port, session) == set(training), "the same link goes to the pod that replaces it"
        eventually(lambda: state(SHORT) == "Idle", "the end of the server that nobody reads", deadline_s=120)
        with connected(SHORT, env) as port:
            assert hosts_served(port, session) == set(training), "connect starts it again"
    finally:
        mldiag(["xprof", "delete", *(each["name"] for each in document("xprof", "list", *where)), "--yes", *where], env)
    assert document("xprof", "list", *where) == []


@pytest.mark.parametrize("scheme", ["s3", "az"])
@pytest.mark.usefixtures("xprof_image")
def test_a_capture_in_a_bucket_is_downloaded_and_opened_in_xprof(
    scheme: str,
    running_cluster: Provider,
    training: list[str],
    buckets: dict[str, ObjectServer],
    tmp_path: Path,
) -> None:
    env = {"KUBECONFIG": str(running_cluster.kubeconfig)} | buckets[scheme].environment()

    def document(*arguments: str) -> Any:
        return json.loads(mldiag([*arguments, "-o", "json"], env))

    directory = f"{scheme}://{bucket_servers.BUCKET}/shown"
    capture = ("capture", "jobset/training", "--duration", "500ms", "--log-directory", directory, "--wait")
    captured = document(*capture, "-n", NAMESPACE)
    session = captured["session"]
    assert (captured["directory"], len(captured["targets"])) == (directory, len(training))
    [copied] = document("profiles", "download", f"{directory}/{session}", "--to", str(tmp_path), "-n", NAMESPACE)
    assert (copied["session"], copied["files"]) == (session, 3), "two traces and the record"
    assert hosts_in_xprof(tmp_path, session) == set(training)

    where = ("-n", OPERATORS)
    server = ("--image", XPROF.default_image, "--bucket-secret", bucket_servers.NAME, "--memory", "1Gi")
    [made] = document("xprof", "create", directory, "--on", "kubernetes", *server, *where)
    try:
        assert (made["state"], made["logDirectory"]) == ("Running", directory)
        with connected(made["name"], env) as port:
            assert hosts_served(port, session) == set(training)
    finally:
        mldiag(["xprof", "delete", made["name"], "--yes", *where], env)


@contextmanager
def connected(server: str, env: dict[str, str]) -> Iterator[int]:
    """Run `mldiag xprof connect`, end it with Ctrl-C, and yield the port of its link."""
    command = [str(MLDIAG), "xprof", "connect", server, "-n", OPERATORS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}) as connection:
        try:
            assert connection.stdout
            link = connection.stdout.readline()
            port = urlsplit(link).port
            assert port, link
            yield port
        finally:
            connection.send_signal(signal.SIGINT)
            assert connection.wait(30) == 130
