"""The provider `bare`: a whole Kubernetes as processes of one Linux machine, for root, without a container engine."""

import http.client
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cluster import host, packages
from cluster.archive import binary_image
from cluster.certificates import Certificates, make_certificates
from cluster.controlplane import (
    API_SERVER_NAMES,
    ControlPlane,
    apiserver_command,
    controller_manager_command,
    etcd_command,
    scheduler_command,
)
from cluster.health import ask, free_ports, healthy, ready
from cluster.kubeconfig import write_kubeconfig
from cluster.locks import exclusive
from cluster.node import (
    NODE_ADDRESS,
    PAUSE_IMAGE,
    Node,
    cni_config,
    containerd_config,
    corefile,
    kubelet_command,
    kubelet_config,
    proxy_config,
)
from cluster.paths import cache
from cluster.process import Daemon, wait_until
from cluster.progress import ClusterError, say, step, tail
from cluster.tools import tool

DATA = Path("/var/lib/mldiagnostics-bare")
RUN = Path("/run/mldiagnostics-bare")
API_PORT = 6443
KUBELET_PORT = 10250
# In the order in which they stop: what starts pods first, the store last.
DAEMONS = (
    "coredns",
    "kube-proxy",
    "kubelet",
    "kube-scheduler",
    "kube-controller-manager",
    "containerd",
    "kube-apiserver",
    "etcd",
)
TOOLS = (*(name for name in DAEMONS if name != "containerd"), "kubectl", "pause")
DEADLINE_S = 60
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


class Bare:
    """One control plane and one node; certificates, data and logs in `DATA`, pid files and sockets in `RUN`."""

    name = "bare"
    chosen_by_itself = True

    def __init__(self) -> None:
        self._node = Node("mldiagnostics-bare", DATA, RUN)
        self._daemons = {name: Daemon(name, run=RUN, logs=DATA / "logs") for name in DAEMONS}
        self._certificates = Certificates(DATA / "pki")

    @property
    def folder(self) -> Path:
        return DATA

    @property
    def kubeconfig(self) -> Path:
        return DATA / "kubeconfig"

    def obstacle(self) -> str | None:
        if sys.platform != "linux":
            return "it needs Linux"
        if os.geteuid() != 0:
            return "it needs root; run it with sudo, or start a Docker engine for kind"
        status = Path("/proc/self/status").read_text()
        effective = int(status.split("CapEff:")[1].split()[0], 16)
        lacking = [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]
        if lacking:
            return f"this container was started without {' and '.join(lacking)}"
        absent = packages.missing_packages(packages.RUNTIME, cni=True)
        if absent and shutil.which("apt-get") is None:
            return f"{', '.join(absent)} are not installed, and there is no apt-get"
        return None

    def running(self) -> bool:
        return self._processes_run() and self._node_ready()

    def up(self) -> None:
        with exclusive(cache() / "bare.lock", "the bare cluster is going up or down"):
            if self._processes_run():
                # Under load a node is late to report; that is no reason to throw a cluster away.
                self._wait("the node is Ready", self._node_ready, "kubelet")
                say("the bare cluster already runs")
                return
            self._remove()
            self._refuse_company()
            packages.install(packages.missing_packages(packages.RUNTIME, cni=True))
            for name in TOOLS:
                tool(name)
            DATA.mkdir(mode=0o755)
            RUN.mkdir(mode=0o755)
            host.Before.observe().save(DATA / "before.json")
            self._start()

    def load_image(self, archive: Path) -> None:
        command = [
            "ctr",
            f"--address={self._node.containerd_socket}",
            "--namespace=k8s.io",
            "images",
            "import",
            str(archive),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"`{' '.join(command)}` ended with {done.returncode}:\n{tail(done.stderr)}")

    def down(self) -> None:
        if not DATA.exists():
            say("no bare cluster stands here")
            return
        if reason := self.obstacle():
            raise ClusterError(f"the bare cluster in {DATA} cannot be removed: {reason}")
        with (
            exclusive(cache() / "bare.lock", "the bare cluster is going up or down"),
            step("removing the bare cluster", about_s=10),
        ):
            self._remove()

    def status(self) -> list[str]:
        lines = [f"{name}: {'runs' if daemon.running() else 'stopped'}" for name, daemon in self._daemons.items()]
        return [*reversed(lines), f"node: {'Ready' if self._node_ready() else 'not ready'}"]

    def _start(self) -> None:
        hosts = (*API_SERVER_NAMES, NODE_ADDRESS, socket.gethostname())
        make_certificates(self._certificates.folder, hosts=hosts, node=self._node.name)
        etcd_port, peer_port, manager_port, scheduler_port, dns_port = free_ports(5)
        plane = ControlPlane(DATA, self._certificates, NODE_ADDRESS, NODE_ADDRESS, API_PORT, etcd_port, peer_port)
        with step("making the pods' network"):
            host.make_bridge()
        with step("starting etcd"):
            self._launch("etcd", etcd_command(plane, tool("etcd")), lambda: healthy(etcd_port))
        with step("starting the API server", about_s=5):
            command = apiserver_command(plane, tool("kube-apiserver"), with_kubelets=True)
            self._launch("kube-apiserver", command, lambda: ready(plane.url, "/readyz", self._certificates))
        self._write_kubeconfigs(plane)
        with step("starting containerd"):
            self._launch("containerd", self._containerd(), self._containerd_ready)
            self.load_image(binary_image(DATA / "pause.tar", PAUSE_IMAGE, tool("pause")))
        with step("starting controller manager, scheduler, kubelet, proxy and DNS", about_s=12):
            self._start_clients(plane, manager_port, scheduler_port, dns_port)
            self._wait("the node is Ready", self._node_ready, "kubelet")
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait(
                "service accounts are made",
                lambda: ready(plane.url, account, self._certificates),
                "kube-controller-manager",
            )
            self._wait("cluster names resolve", lambda: healthy(dns_port, "/ready"), "coredns")

    def _start_clients(self, plane: ControlPlane, manager_port: int, scheduler_port: int, dns_port: int) -> None:
        configs = self._write_configs(dns_port)
        commands = {
            "kube-controller-manager": controller_manager_command(
                plane, tool("kube-controller-manager"), self._kubeconfig_of("controller-manager"), port=manager_port
            ),
            "kube-scheduler": scheduler_command(
                tool("kube-scheduler"), self._kubeconfig_of("scheduler"), port=scheduler_port
            ),
            "kubelet": kubelet_command(self._node, tool("kubelet"), configs["kubelet"], self._kubeconfig_of("kubelet")),
            "kube-proxy": [str(tool("kube-proxy")), f"--config={configs['proxy']}"],
            "coredns": [str(tool("coredns")), "-conf", str(configs["dns"])],
        }
        for name, command in commands.items():
            self._daemons[name].start(command)

    def _write_configs(self, dns_port: int) -> dict[str, Path]:
        resolved = Path("/run/systemd/resolve/resolv.conf")  # the stub of systemd-resolved is out of a pod's reach
        resolv_conf = resolved if resolved.exists() else Path("/etc/resolv.conf")
        texts = {
            "kubelet": kubelet_config(self._node, self._certificates.ca, resolv_conf),
            "proxy": proxy_config(self._node, self._kubeconfig_of("proxy")),
            "dns": corefile(self._kubeconfig_of("coredns"), resolv_conf, ready_port=dns_port),
        }
        files = {name: DATA / f"{name}.config" for name in texts}
        for name, text in texts.items():
            files[name].write_text(text)
        return files

    def _write_kubeconfigs(self, plane: ControlPlane) -> None:
        for client in ("controller-manager", "scheduler", "kubelet", "proxy", "coredns"):
            path = self._kubeconfig_of(client)
            write_kubeconfig(path, server=plane.url, certificates=self._certificates, client=client)
        write_kubeconfig(self.kubeconfig, server=plane.url, certificates=self._certificates, client="admin")

    def _kubeconfig_of(self, client: str) -> Path:
        return DATA / f"{client}.kubeconfig"

    def _containerd(self) -> list[str]:
        binaries = packages.cni_binaries()
        if binaries is None:
            raise ClusterError(f"the CNI plugins are gone; install {packages.CNI_PACKAGE}")
        config = DATA / "containerd.toml"
        config.write_text(containerd_config(self._node, binaries))
        self._node.cni_folder.mkdir()
        (self._node.cni_folder / "10-mldiagnostics.conflist").write_text(cni_config(self._node))
        return ["containerd", f"--config={config}"]

    def _containerd_ready(self) -> bool:
        command = ["ctr", f"--address={self._node.containerd_socket}", "version"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _launch(self, name: str, command: list[str], condition: Callable[[], bool]) -> None:
        self._daemons[name].start(command)
        self._wait(f"{name} answers", condition, name)

    def _wait(self, what: str, condition: Callable[[], bool], daemon: str) -> None:
        wait_until(condition, what, deadline_s=DEADLINE_S, needs=[self._daemons[daemon]])

    def _processes_run(self) -> bool:
        return all(daemon.running() for daemon in self._daemons.values())

    def _node_ready(self) -> bool:
        if not os.access(self._certificates.key("admin"), os.R_OK):
            return False
        url = f"https://{NODE_ADDRESS}:{API_PORT}"
        status, body = ask(url, f"/api/v1/nodes/{self._node.name}", self._certificates)
        if status != http.client.OK:
            return False
        conditions = body["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _remove(self) -> None:
        """Stop and remove whatever stands; works on the remains of a half-made cluster too."""
        for daemon in self._daemons.values():
            # Open watches would hold the API server for ten seconds; everything it holds goes anyway.
            daemon.stop(deadline_s=2 if daemon.name == "kube-apiserver" else 10)
        if not DATA.exists():
            return
        host.kill_pods(self._node.containerd_socket)
        host.unmount([DATA, RUN])
        host.remove_bridge()
        record = DATA / "before.json"
        if record.exists():
            host.Before.load(record).restore()
        shutil.rmtree(RUN, ignore_errors=True)
        shutil.rmtree(DATA)

    @staticmethod
    def _refuse_company() -> None:
        """Another Kubernetes node on this machine would share cgroups, ports and rules with ours."""
        if host.pod_processes():
            raise ClusterError(
                f"another kubelet's pods run here ({host.pod_cgroups()[0]}); stop it, or use CLUSTER=kind"
            )
        for port in (API_PORT, KUBELET_PORT):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                raise ClusterError(f"port {port} is in use; stop what listens there (`ss -ltnp`), or use CLUSTER=kind")
