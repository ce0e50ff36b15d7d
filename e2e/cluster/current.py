"""The provider `current`: the kubeconfig context in use, which is somebody's cluster and is never made or removed."""

import os
import subprocess
from pathlib import Path

from cluster.progress import ClusterError, say
from cluster.tools import tool


class Current:
    """Whatever `kubectl` talks to now."""

    name = "current"
    chosen_by_itself = False

    @property
    def folder(self) -> Path:
        raise ClusterError(f"the cluster of {self.kubeconfig} is somebody's; nothing is kept for it here")

    @property
    def kubeconfig(self) -> Path:
        chosen = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
        return Path(chosen) if chosen else Path.home() / ".kube" / "config"

    def obstacle(self) -> str | None:
        if not self.kubeconfig.exists():
            return f"there is no {self.kubeconfig}; set KUBECONFIG"
        return None

    def running(self) -> bool:
        return self.kubeconfig.exists() and self._kubectl("get", "--raw=/readyz").returncode == 0

    def up(self) -> None:
        if not self.running():
            raise ClusterError(f"the cluster of {self.kubeconfig} does not answer: {self._reason()}")
        say(f"using the cluster of {self.kubeconfig}; it is not changed by `up` and `down`")

    def load_image(self, archive: Path) -> None:
        raise ClusterError(
            f"{archive.name} cannot be put into somebody's cluster; push the image to a registry that the cluster "
            "pulls from (make images REGISTRY=...) and give that name to the charts"
        )

    def down(self) -> None:
        say(f"the cluster of {self.kubeconfig} is left as it is")

    def status(self) -> list[str]:
        return [f"kubeconfig: {self.kubeconfig}", "answers" if self.running() else f"no answer: {self._reason()}"]

    def _reason(self) -> str:
        return self._kubectl("get", "--raw=/readyz").stderr.strip()

    @staticmethod
    def _kubectl(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(tool("kubectl")), *arguments, "--request-timeout=5s"]
        return subprocess.run(command, capture_output=True, text=True, check=False)
