"""What a cluster needs before it can capture: the JobSet controller, the images, the operator's chart."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster import addons, images
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from cluster.provider import Provider

OPERATOR = "mldiagnostics-connection-operator"
NAMESPACE = "gke-mldiagnostics"
CHART = REPOSITORY / "charts" / OPERATOR
EXAMPLE = REPOSITORY / "examples/jax-training"
OPERATOR_IMAGE = f"localhost/mldiagnostics/{OPERATOR}:0.1.0"  # what the chart names without any value
TRAINING_IMAGE = "localhost/mldiagnostics/jax-training:0.1.0"
HELM_DEADLINE_S = 120


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


def prepare(provider: Provider) -> list[str]:
    """Install the JobSet controller, build both images and load them; an unchanged one is left as it is.

    Returns the helm arguments with which an operator image built anew under its old name replaces the running one.
    """
    addons.install("jobset", provider)
    training = images.build(EXAMPLE / "Dockerfile", EXAMPLE, TRAINING_IMAGE)
    images.load(training, provider)
    operator = images.build(REPOSITORY / "operator/Dockerfile", REPOSITORY, OPERATOR_IMAGE)
    images.load(operator, provider)
    return ["--set-string", f"podAnnotations.image-archive={operator.name}"]


def install_operator(helm: Helm, values: Sequence[str] = ()) -> None:
    """Install the operator's chart, or bring an installation to these values, and wait until it is ready."""
    helm(
        "upgrade", "--install", OPERATOR, str(CHART),
        f"--namespace={NAMESPACE}", "--create-namespace", "--reset-values",
        "--wait", f"--timeout={HELM_DEADLINE_S}s", *values,
    )  # fmt: skip
