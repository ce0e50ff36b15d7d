"""Only etcd and the API server, as local processes on free ports: real answers for contract tests in seconds."""

import base64
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from cluster.certificates import make_certificates
from cluster.controlplane import (
    API_SERVER_NAMES,
    ControlPlane,
    apiserver_command,
    controller_manager_command,
    etcd_command,
)
from cluster.health import free_ports, healthy, post, ready
from cluster.kubeconfig import write_kubeconfig
from cluster.process import Daemon, wait_until
from cluster.tools import tool

# Those whose results API tests see; none of them makes pods.
CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "validatingadmissionpolicy-status-controller",
)
START_DEADLINE_S = 60


class ApiServer:
    """A running API server; `kubeconfig` is the administrator's, `url` and `ca` are for clients of other users."""

    def __init__(self, folder: Path, *, controller_manager: bool, audited: bool) -> None:
        api_port, etcd_port, peer_port, self._manager_port = free_ports(4)
        certificates = make_certificates(folder / "pki", hosts=API_SERVER_NAMES)
        # Not loopback: the server refuses to advertise that, and nothing uses the endpoint in these tests.
        advertised = "192.0.2.1"
        self._plane = ControlPlane(folder, certificates, "127.0.0.1", advertised, api_port, etcd_port, peer_port)
        self._etcd, self._apiserver, self._manager = (
            Daemon(name, run=folder, logs=folder / "logs")
            for name in ("etcd", "kube-apiserver", "kube-controller-manager")
        )
        self._with_manager = controller_manager
        self.audit_log = folder / "audit.log" if audited else None
        self.url = self._plane.url
        self.ca = certificates.ca
        write = partial(write_kubeconfig, server=self.url, certificates=certificates)
        self.kubeconfig = write(folder / "kubeconfig", client="admin")
        self._manager_kubeconfig = write(folder / "controller-manager.kubeconfig", client="controller-manager")

    def start(self) -> None:
        """Start everything and wait until it answers."""
        self.start_etcd()
        self.start_apiserver()
        if self._with_manager:
            self._start_manager()

    def stop(self) -> None:
        """Stop everything; repeating does nothing."""
        for daemon in (self._manager, self._apiserver, self._etcd):
            daemon.stop(deadline_s=2)  # open watches would hold the API server for ten

    def restart(self) -> None:
        """Stop the API server and start it again on the same port with the same data."""
        self.stop_apiserver()
        self.start_apiserver()

    def stop_apiserver(self) -> None:
        self._apiserver.stop(deadline_s=2)  # open watches would hold it for ten

    def start_apiserver(self) -> None:
        # Without the controller nobody makes the default service account that this plugin asks for.
        disabled = () if self._with_manager else ("ServiceAccount",)
        binary = tool("kube-apiserver")
        self._apiserver.start(
            apiserver_command(
                self._plane, binary, with_kubelets=False, disabled_admission=disabled, audit_log=self.audit_log
            )
        )
        certificates = self._plane.certificates
        self._wait(lambda: ready(self.url, "/readyz", certificates), self._apiserver)

    def stop_etcd(self) -> None:
        self._etcd.stop()

    def start_etcd(self) -> None:
        self._etcd.start(etcd_command(self._plane, tool("etcd")))
        self._wait(lambda: healthy(self._plane.etcd_port), self._etcd)

    def restart_etcd(self) -> None:
        """Stop etcd and start it again with its data; the API server stays up and reconnects."""
        self.stop_etcd()
        self.start_etcd()
        certificates = self._plane.certificates
        self._wait(lambda: ready(self.url, "/readyz", certificates), self._etcd, self._apiserver)

    def forget_history(self) -> None:
        """Restart with an etcd that keeps the present only: a watch that goes on from before is told `410 Gone`."""
        self.stop_apiserver()
        port, key = self._plane.etcd_port, base64.b64encode(b"any").decode()
        revision = post(port, "/v3/kv/range", {"key": key})["header"]["revision"]
        post(port, "/v3/kv/compaction", {"revision": revision})
        self.start_apiserver()

    def _start_manager(self) -> None:
        binary = tool("kube-controller-manager")
        self._manager.start(
            controller_manager_command(
                self._plane, binary, self._manager_kubeconfig, port=self._manager_port, controllers=CONTROLLERS
            )
        )
        certificates = self._plane.certificates
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(lambda: ready(self.url, account, certificates), self._manager)

    @staticmethod
    def _wait(condition: Callable[[], bool], *needs: Daemon) -> None:
        wait_until(condition, f"{needs[-1].name} is ready", deadline_s=START_DEADLINE_S, needs=needs)


@contextmanager
def apiserver(*, controller_manager: bool = False, audited: bool = False) -> Iterator[ApiServer]:
    """Run an API server for the duration of the block.

    With `controller_manager`, namespaces are deleted, owned objects collected, service accounts made and ClusterRoles
    aggregated as on a cluster; without it, pods need no service account. With `audited`, `audit_log` of the server is a
    file with one event of `audit.k8s.io/v1` in each line.

    Raises:
        ClusterError: a tool cannot be had, or a process does not come up; the message quotes its log.
    """
    folder = Path(tempfile.mkdtemp(prefix="mldiagnostics-apiserver-"))
    server = ApiServer(folder, controller_manager=controller_manager, audited=audited)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
