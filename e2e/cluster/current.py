"""Provider `current`: the cluster of the current kubeconfig context, never created or removed."""

import os
import subprocess
from pathlib import Path

from cluster import ambient
from cluster.durations import Expected
from cluster.progress import ClusterError, echo
from cluster.tools import tool


class Current:
    """Cluster of the current kubeconfig context."""

    name = "current"
    automatic = False
    tools: tuple[str, ...] = ("kubectl",)
    start = Expected("Using the current cluster", 1)

    @property
    def folder(self) -> Path:
        raise ClusterError(
            f"{self.kubeconfig}: no files are kept for an existing cluster; use CLUSTER=kind or CLUSTER=bare"
        )

    @property
    def kubeconfig(self) -> Path:
        chosen = ambient.environment().get("KUBECONFIG", "").split(os.pathsep)[0]
        return Path(chosen) if chosen else ambient.home() / ".kube" / "config"

    def obstacle(self) -> str | None:
        if not self.kubeconfig.exists():
            return f"{self.kubeconfig} does not exist; set KUBECONFIG"
        return None

    def packages(self) -> list[str]:
        return []

    def running(self) -> bool:
        return self.kubeconfig.exists() and self._kubectl("get", "--raw=/readyz").returncode == 0

    def up(self) -> None:
        if not self.running():
            raise ClusterError(f"{self.kubeconfig}: the cluster does not answer: {self._reason()}")
        echo(f"Using the cluster of {self.kubeconfig}; `up` and `down` do not change it")

    def load_image(self, archive: Path) -> None:
        raise ClusterError(
            f"{archive.name}: cannot be loaded into an existing cluster; push the image to a registry that the cluster "
            "pulls from (make images REGISTRY=...) and set image.registry of the charts"
        )

    def may_pull(self, image: str) -> bool:
        return bool(image)

    def pull(self, image: str) -> bool:
        return bool(image)  # the pods of a real cluster pull public images themselves

    def down(self) -> None:
        echo(f"The cluster of {self.kubeconfig} is not changed")

    def status(self) -> list[str]:
        return [f"kubeconfig: {self.kubeconfig}", "answers" if self.running() else f"no answer: {self._reason()}"]

    def _reason(self) -> str:
        return self._kubectl("get", "--raw=/readyz").stderr.strip()

    @staticmethod
    def _kubectl(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(tool("kubectl")), *arguments, "--request-timeout=5s"]
        return subprocess.run(command, env=ambient.environment(), capture_output=True, text=True, check=False)
