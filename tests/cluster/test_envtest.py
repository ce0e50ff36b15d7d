"""API server for contract tests: real, restartable, removed at the end."""

import socket
import subprocess
import urllib.parse

import pytest
from cluster.addons import crd_paths
from cluster.envtest import ApiServer, apiserver
from cluster.process import wait_until
from cluster.tools import tool

pytestmark = pytest.mark.apiserver

DEADLINE_S = 120


def kubectl(server: ApiServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(tool("kubectl")), f"--kubeconfig={server.kubeconfig}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_data_survive_restarts_and_everything_is_removed() -> None:
    with apiserver() as server:
        folder = server.kubeconfig.parent
        assert kubectl(server, "create", "namespace", "kept").returncode == 0
        server.stop_apiserver()
        assert "refused" in kubectl(server, "get", "namespaces").stderr
        server.start_apiserver()
        server.restart_etcd()
        assert kubectl(server, "get", "namespace", "kept").returncode == 0
        assert kubectl(server, "run", "pod", "--image=none", "--namespace=kept").returncode == 0
    assert not folder.exists()
    address = urllib.parse.urlsplit(server.url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port))


def test_with_a_controller_manager_namespaces_are_deleted_and_addon_crds_work() -> None:
    """One addon: each of its definitions takes the server 2 s; tests that use the others install them."""
    with apiserver(controller_manager=True) as server:
        for path in crd_paths("jobset"):
            created = kubectl(server, "create", "--filename", str(path))
            assert created.returncode == 0, created.stderr
        resources = ("api-resources", "--api-group=jobset.x-k8s.io")
        wait_until(lambda: "jobsets" in kubectl(server, *resources).stdout, "jobsets are served", deadline_s=DEADLINE_S)
        assert kubectl(server, "create", "namespace", "going").returncode == 0
        assert kubectl(server, "delete", "namespace", "going", f"--timeout={DEADLINE_S}s").returncode == 0
        account = kubectl(server, "create", "token", "default", "--audience=mldiagnostics")
        assert account.stdout.count(".") == 2
