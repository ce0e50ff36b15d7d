"""What a cluster needs before it can capture: the JobSet controller, the images, the operator's chart."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.paths import REPOSITORY
from cluster.progress import ClusterError

from demo.kubectl import Kubectl

OPERATOR = "mldiagnostics-connection-operator"
NAMESPACE = "gke-mldiagnostics"
CHART = REPOSITORY / "charts" / OPERATOR
EXAMPLE = REPOSITORY / "examples/jax-training"
OPERATOR_IMAGE = f"localhost/mldiagnostics/{OPERATOR}:0.1.0"
TRAINING_IMAGE = "localhost/mldiagnostics/jax-training:0.1.0"
HELM_DEADLINE_S = 240


@dataclass(frozen=True, slots=True)
class Helm:
    """helm with one kubeconfig."""

    binary: Path
    kubeconfig: Path

    def __call__(self, *arguments: str) -> str:
        """Run helm and return what it prints.

        Raises:
            ClusterError: it failed; the message quotes it.
        """
        command = [str(self.binary), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HELM_DEADLINE_S + 30, check=False)
        if done.returncode:
            raise ClusterError(f"helm {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


def install_operator(helm: Helm, values: Sequence[str] = ()) -> None:
    """Install the operator's chart, or bring an installation to these values, and wait until it is ready."""
    helm(
        "upgrade", "--install", OPERATOR, str(CHART),
        f"--namespace={NAMESPACE}", "--create-namespace", "--reset-values",
        "--wait", f"--timeout={HELM_DEADLINE_S}s", *values,
    )  # fmt: skip


def restart_operator(kubectl: Kubectl) -> None:
    """Replace the operator's pods, so that an image built anew under the same tag is the one that runs."""
    kubectl("rollout", "restart", f"deployment/{OPERATOR}", f"--namespace={NAMESPACE}")
    kubectl("rollout", "status", f"deployment/{OPERATOR}", f"--namespace={NAMESPACE}", "--timeout=4m", timeout_s=250)
