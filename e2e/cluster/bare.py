"""Provider `bare`: Kubernetes as processes of a Linux machine, as root, without a container engine."""

import http.client
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from cluster import host, netfilter, packages
from cluster.archive import binary_image
from cluster.certificates import Certificates, make_certificates
from cluster.controlplane import (
    API_SERVER_NAMES,
    SERVICE_NETWORK,
    ControlPlane,
    apiserver_command,
    controller_manager_command,
    etcd_command,
    scheduler_command,
)
from cluster.durations import Expected
from cluster.health import get, healthy, ready
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
from cluster.ports import free_ports
from cluster.process import Daemon, wait_until
from cluster.progress import ClusterError, echo, step, tail
from cluster.sources import reachable
from cluster.tools import in_order, tool

DATA = Path("/var/lib/mldiagnostics-bare")
RUN = Path("/run/mldiagnostics-bare")
API_PORT = 6443
KUBELET_PORT = 10250
# In stop order: the processes that start pods first, the store last.
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
IMAGE_DEADLINE_S = 300
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


class Bare:
    """One control plane and one node: data and logs in `DATA`, pid files and sockets in `RUN`."""

    name = "bare"
    automatic = True
    tools: tuple[str, ...] = TOOLS
    start = Expected("Starting the bare cluster", 25)

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
            return "needs Linux"
        if os.geteuid() != 0:
            return "needs root; use sudo, or start a Docker engine for kind"
        status = Path("/proc/self/status").read_text()
        effective = int(status.split("CapEff:")[1].split()[0], 16)
        missing = [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]
        if missing:
            return f"this container lacks {' and '.join(missing)}; start it with these capabilities"
        absent = self.packages()
        if absent and shutil.which("apt-get") is None:
            return f"needs the Debian packages {', '.join(absent)}, and there is no apt-get; install them"
        return None

    def packages(self) -> list[str]:
        return packages.missing_packages(packages.RUNTIME, cni=True)

    def running(self) -> bool:
        return self._processes_run() and self._node_ready()

    def up(self) -> None:
        with exclusive(cache() / "bare.lock", "it starts or removes the bare cluster"):
            if self._processes_run():
                # Under load the node may report late: wait instead of replacing the cluster.
                self._wait("node Ready", self._node_ready, "kubelet")
                echo("The bare cluster is already running")
                return
            self._remove()
            self._check_no_other_kubernetes()
            packages.install(self.packages())
            for name in in_order(TOOLS):
                tool(name)
            DATA.mkdir(mode=0o755)
            RUN.mkdir(mode=0o755)
            host.MachineState.observe().save(DATA / "before.json")
            self._start()

    def load_image(self, archive: Path) -> None:
        done = self._images("import", str(archive))
        if done.returncode:
            raise ClusterError(f"`{shlex.join(done.args)}` ended with {done.returncode}:\n{tail(done.stderr)}")

    def may_pull(self, image: str) -> bool:
        return reachable(image.partition("/")[0])

    def pull(self, image: str) -> bool:
        if not self.may_pull(image):
            return False
        with step(f"Pulling {image}", about_s=20):
            return self._images("pull", image).returncode == 0

    def down(self) -> None:
        if not DATA.exists():
            echo("There is no bare cluster")
            return
        if reason := self.obstacle():
            raise ClusterError(f"the bare cluster in {DATA}: cannot be removed: {reason}")
        with (
            exclusive(cache() / "bare.lock", "it starts or removes the bare cluster"),
            step("Removing the bare cluster", about_s=10),
        ):
            self._remove()

    def status(self) -> list[str]:
        lines = [f"{name}: {'running' if daemon.running() else 'stopped'}" for name, daemon in self._daemons.items()]
        return [*reversed(lines), f"node: {'Ready' if self._node_ready() else 'not ready'}"]

    def without(self, part: str) -> AbstractContextManager[None]:
        """Kill one process of the cluster while the block runs, and start it again."""
        return self._daemons[part].killed()

    def _start(self) -> None:
        hosts = (*API_SERVER_NAMES, NODE_ADDRESS, socket.gethostname())
        make_certificates(self._certificates.folder, hosts=hosts, node=self._node.name)
        etcd_port, peer_port, manager_port, scheduler_port, dns_port = free_ports(5)
        plane = ControlPlane(DATA, self._certificates, NODE_ADDRESS, NODE_ADDRESS, API_PORT, etcd_port, peer_port)
        with step("Creating the pod network"):
            host.make_bridge()
            netfilter.reject_unrouted(SERVICE_NETWORK)
        with step("Starting etcd"):
            self._launch("etcd", etcd_command(plane, tool("etcd")), lambda: healthy(etcd_port))
        with step("Starting the API server", about_s=5):
            command = apiserver_command(plane, tool("kube-apiserver"), with_kubelets=True)
            self._launch("kube-apiserver", command, lambda: ready(plane.url, "/readyz", self._certificates))
        self._write_kubeconfigs(plane)
        with step("Starting containerd"):
            self._launch("containerd", self._containerd(), self._containerd_ready)
            self.load_image(binary_image(DATA / "pause.tar", PAUSE_IMAGE, tool("pause")))
        with step("Starting controller manager, scheduler, kubelet, proxy and DNS", about_s=12):
            self._start_clients(plane, manager_port, scheduler_port, dns_port)
            self._wait("node Ready", self._node_ready, "kubelet")
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait(
                "creation of service accounts",
                lambda: ready(plane.url, account, self._certificates),
                "kube-controller-manager",
            )
            self._wait("resolution of cluster names", lambda: healthy(dns_port, "/ready"), "coredns")

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
        resolved = Path("/run/systemd/resolve/resolv.conf")  # pods cannot reach the stub resolver
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

    def _images(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        client = ["ctr", f"--address={self._node.containerd_socket}", "--namespace=k8s.io", "images"]
        command = ["timeout", str(IMAGE_DEADLINE_S), *client, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _containerd(self) -> list[str]:
        binaries = packages.cni_binaries()
        if binaries is None:
            raise ClusterError(f"the CNI plugins are not installed; install {packages.CNI_PACKAGE}")
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
        self._wait(f"start of {name}", condition, name)

    def _wait(self, what: str, condition: Callable[[], bool], daemon: str) -> None:
        wait_until(condition, what, deadline_s=DEADLINE_S, needs=[self._daemons[daemon]])

    def _processes_run(self) -> bool:
        return all(daemon.running() for daemon in self._daemons.values())

    def _node_ready(self) -> bool:
        if not os.access(self._certificates.key("admin"), os.R_OK):
            return False
        url = f"https://{NODE_ADDRESS}:{API_PORT}"
        status, body = get(url, f"/api/v1/nodes/{self._node.name}", self._certificates)
        if status != http.client.OK:
            return False
        conditions = body["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _remove(self) -> None:
        """Stop and remove all parts, also those of an incomplete cluster."""
        for daemon in self._daemons.values():
            # Open watches would delay the API server for 10 s, and its data is removed anyway.
            daemon.stop(deadline_s=2 if daemon.name == "kube-apiserver" else 10)
        if not DATA.exists():
            return
        host.kill_pods(self._node.containerd_socket)
        host.unmount([DATA, RUN])
        host.remove_bridge()
        record = DATA / "before.json"
        if record.exists():
            host.MachineState.load(record).restore()
        shutil.rmtree(RUN, ignore_errors=True)
        shutil.rmtree(DATA)

    @staticmethod
    def _check_no_other_kubernetes() -> None:
        """Raise ClusterError if another Kubernetes uses the cgroups and ports of this machine."""
        if host.pod_processes():
            raise ClusterError(
                f"pods of another kubelet run here ({host.pod_cgroups()[0]}); stop it, or use CLUSTER=kind"
            )
        for port in (API_PORT, KUBELET_PORT):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                raise ClusterError(
                    f"port {port}: in use; stop the process that listens there (`ss -ltnp`), or use CLUSTER=kind"
                )
