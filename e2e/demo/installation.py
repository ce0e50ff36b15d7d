"""Installation for the demo: the JobSet controller, the images, and both charts."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import addons, images
from cluster.durations import Expected
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from cluster.provider import Provider
from release import parts
from release.parts import PARTS, Part

OPERATOR = parts.OPERATOR.name
WEBHOOK = parts.WEBHOOK.name
NAMESPACE = parts.NAMESPACE
EXAMPLE = REPOSITORY / "examples/jax-training"
TRAINING_IMAGE = "localhost/mldiagnostics/jax-training:0.1.0"
IMAGES = ((EXAMPLE / "Dockerfile", TRAINING_IMAGE), *((part.dockerfile, part.default_image) for part in PARTS))
CONTEXT = REPOSITORY
ADDON = "jobset"
HELM_DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Helm:
    """The command helm with one kubeconfig."""

    binary: Path
    kubeconfig: Path

    def __call__(self, *arguments: str) -> str:
        """Run helm and return its output.

        Raises:
            ClusterError: helm failed; the message quotes its error.
        """
        command = [str(self.binary), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HELM_DEADLINE_S + 30, check=False)
        if done.returncode:
            raise ClusterError(f"helm {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


def prepare(provider: Provider, parts: Sequence[Part] = ()) -> list[tuple[Part, list[str]]]:
    """Install the JobSet controller, and load the images of the training job and of these parts while it starts.

    Returns:
        The parts, each with the helm arguments of `load_image`.
    """
    with addons.installed(ADDON, provider):
        images.load(images.build(EXAMPLE / "Dockerfile", REPOSITORY, TRAINING_IMAGE), provider)
        return [(part, load_image(part, provider)) for part in parts]


def load_image(part: Part, provider: Provider) -> list[str]:
    """Build the image of a part and load it, unless it is unchanged.

    Returns:
        Helm arguments that replace the pods if the image was rebuilt under the same name.
    """
    archive = images.build(part.dockerfile, REPOSITORY, part.default_image)
    images.load(archive, provider)
    return ["--set-string", f"podAnnotations.image-archive={archive.name}"]


def installing(part: Part) -> Expected:
    """Return the step that `install` is."""
    return Expected(f"helm install {part.name}", 10)


def settings(values: Mapping[str, Any]) -> list[str]:
    """Return the helm arguments for values by dotted path."""
    return [part for name, value in values.items() for part in ("--set-json", f"{name}={json.dumps(value)}")]


def install(part: Part, helm: Helm, values: Sequence[str] = ()) -> None:
    """Install or upgrade the chart of a part with these values and wait until it is ready.

    The API server may not reach a webhook that is ready yet: wait for the first injection too.
    """
    helm(
        "upgrade", "--install", part.name, str(part.chart),
        f"--namespace={NAMESPACE}", "--create-namespace", "--reset-values",
        "--wait", f"--timeout={HELM_DEADLINE_S}s", *values,
    )  # fmt: skip
