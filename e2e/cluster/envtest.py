"""API server and etcd as local processes on free ports, for contract tests."""

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
from cluster.health import healthy, post, ready
from cluster.kubeconfig import write_kubeconfig
from cluster.ports import free_ports
from cluster.process import Daemon, wait_until
from cluster.tools import tool

# Controllers whose results the tests read; none of them creates pods.
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
    """API server; `kubeconfig` is the administrator's, `url` and `ca` are for other users."""

    def __init__(self, folder: Path, *, controller_manager: bool, audited: bool) -> None:
        api_port, etcd_port, peer_port, self._manager_port = free_ports(4)
        certificates = make_certificates(folder / "pki", hosts=API_SERVER_NAMES)
        # The server rejects a loopback address here, and no test uses the endpoint.
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

    @property
    def pids(self) -> dict[str, int]:
        """Ids of the processes that run, by name."""
        daemons = (self._etcd, self._apiserver, self._manager)
        return {daemon.name: pid for daemon in daemons if (pid := daemon.pid) is not None}

    def start(self) -> None:
        """Start all processes and wait until they answer."""
        self.start_etcd()
        self.start_apiserver()
        if self._with_manager:
            self._start_manager()

    def stop(self) -> None:
        """Stop all processes that run."""
        for daemon in (self._manager, self._apiserver, self._etcd):
            daemon.stop(deadline_s=2)  # open watches would delay the API server for 10 s

    def restart(self) -> None:
        """Stop the API server and start it again on the same port with the same data."""
        self.stop_apiserver()
        self.start_apiserver()

    def stop_apiserver(self) -> None:
        """Stop the API server."""
        self._apiserver.stop(deadline_s=2)  # open watches would delay it for 10 s

    def start_apiserver(self) -> None:
        """Start the API server and wait until it is ready."""
        # This plugin needs the default service account, which the controller creates.
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
        """Stop etcd."""
        self._etcd.stop()

    def start_etcd(self) -> None:
        """Start etcd and wait until it is healthy."""
        self._etcd.start(etcd_command(self._plane, tool("etcd")))
        self._wait(lambda: healthy(self._plane.etcd_port), self._etcd)

    def restart_etcd(self) -> None:
        """Stop etcd and start it again with its data; the API server stays up and reconnects."""
        self.stop_etcd()
        self.start_etcd()
        certificates = self._plane.certificates
        self._wait(lambda: ready(self.url, "/readyz", certificates), self._etcd, self._apiserver)

    def forget_history(self, *, deleted: str = "") -> None:
        """Compact etcd and restart: older watches get `410 Gone`.

        Args:
            deleted: Key in etcd of an object that is deleted meanwhile, so that no watch shows it.
        """
        self.stop_apiserver()
        port, key = self._plane.etcd_port, base64.b64encode(b"any").decode()
        if deleted:
            post(port, "/v3/kv/deleterange", {"key": base64.b64encode(deleted.encode()).decode()})
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
        wait_until(condition, f"start of {needs[-1].name}", deadline_s=START_DEADLINE_S, needs=needs)


@contextmanager
def apiserver(*, controller_manager: bool = False, audited: bool = False) -> Iterator[ApiServer]:
    """Run an API server while the block runs.

    Args:
        controller_manager: Delete namespaces, collect owned objects, create service accounts and aggregate
            ClusterRoles as in a cluster. Without it, pods need no service account.
        audited: Write one event of `audit.k8s.io/v1` per line to the file `audit_log`.

    Raises:
        ClusterError: a tool is missing, or a process does not start; the message quotes its log.
    """
    folder = Path(tempfile.mkdtemp(prefix="mldiagnostics-apiserver-"))
    server = ApiServer(folder, controller_manager=controller_manager, audited=audited)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
