"""Provider `kind`: a cluster in privileged Docker containers."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster import ambient, docker, images
from cluster.archive import binary_image
from cluster.command import run
from cluster.durations import Expected
from cluster.locks import exclusive
from cluster.node import PAUSE_IMAGE
from cluster.paths import cache
from cluster.progress import ClusterError, echo, step
from cluster.tools import tool

CLUSTER = "mldiagnostics"
# Matches kind 0.30; change both together.
NODE_IMAGE = "kindest/node:v1.34.0@sha256:7416a61b42b1662ca6ca89f02028ac133a309a2a30ba309614e8ec94d976dc5a"


class Kind:
    """One node in one container, with a separate kubeconfig."""

    name = "kind"
    automatic = True
    tools: tuple[str, ...] = ("kubectl", "kind")
    start = Expected("Starting the kind cluster", 100)

    @property
    def folder(self) -> Path:
        return cache() / "kind-cluster"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def obstacle(self) -> str | None:
        if reason := docker.obstacle() or images.obstacle():
            return reason
        try:
            with tempfile.TemporaryDirectory() as folder:
                archive = binary_image(Path(folder) / "pause.tar", PAUSE_IMAGE, tool("pause"))
                return docker.privileged_obstacle(PAUSE_IMAGE, archive)
        except ClusterError as error:
            return str(error)

    def packages(self) -> list[str]:
        return []

    def running(self) -> bool:
        if shutil.which("docker") is None or not self.kubeconfig.exists():
            return False
        return _run(str(tool("kubectl")), f"--kubeconfig={self.kubeconfig}", "get", "--raw=/readyz").returncode == 0

    def up(self) -> None:
        with exclusive(cache() / "kind.lock", "it starts or removes the kind cluster"):
            if self.running():
                echo("The kind cluster is already running")
                return
            tool("kubectl")
            kind = str(tool("kind"))
            self._remove()
            self.folder.mkdir(parents=True)
            with step("Creating a kind cluster; the first time it pulls an image of 1 GB", about_s=90):
                options = [f"--name={CLUSTER}", f"--image={NODE_IMAGE}", f"--kubeconfig={self.kubeconfig}"]
                run([kind, "create", "cluster", *options, "--wait=120s"])

    def load_image(self, archive: Path) -> None:
        run([str(tool("kind")), "load", "image-archive", str(archive), f"--name={CLUSTER}"])

    def may_pull(self, image: str) -> bool:
        return bool(image)  # the engine may reach registries that this process does not

    def pull(self, image: str) -> bool:
        with step(f"Pulling {image}", about_s=20):
            return _run("docker", "exec", f"{CLUSTER}-control-plane", "crictl", "pull", image).returncode == 0

    def down(self) -> None:
        if not self.folder.exists():
            echo("There is no kind cluster")
            return
        with (
            exclusive(cache() / "kind.lock", "it starts or removes the kind cluster"),
            step("Removing the kind cluster", about_s=5),
        ):
            self._remove()

    def status(self) -> list[str]:
        nodes = _run(str(tool("kind")), "get", "nodes", f"--name={CLUSTER}").stdout.split()
        return [*(f"node container: {node}" for node in nodes), "running" if self.running() else "stopped"]

    def _remove(self) -> None:
        run([str(tool("kind")), "delete", "cluster", f"--name={CLUSTER}", f"--kubeconfig={self.kubeconfig}"])
        shutil.rmtree(self.folder, ignore_errors=True)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=ambient.environment(), capture_output=True, text=True, check=False)
