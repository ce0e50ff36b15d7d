"""Images, and parts with a chart and values of each variant of the plain YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.paths import REPOSITORY

from release import version

NAMESPACE = "gke-mldiagnostics"
DEFAULT_REGISTRY = "localhost/mldiagnostics"
"""The charts of a checkout name images that nobody publishes; `make package` sets a registry."""


@dataclass(frozen=True, slots=True)
class Image:
    """One image."""

    name: str
    folder: str
    """Folder of the Dockerfile."""

    @property
    def dockerfile(self) -> Path:
        return REPOSITORY / self.folder / "Dockerfile"

    @property
    def default_image(self) -> str:
        """Full name of the image that the chart of this checkout uses."""
        return f"{DEFAULT_REGISTRY}/{self.name}:{version.current()}"


@dataclass(frozen=True, slots=True)
class Part(Image):
    """One chart with its image; both, and the release, have one name.

    `variants` are the values of each installation without helm, by name suffix.
    """

    variants: Mapping[str, Mapping[str, Any]]

    @property
    def chart(self) -> Path:
        return REPOSITORY / "charts" / self.name

    def title(self, variant: str) -> str:
        """Return the name of a variant's folder and file."""
        return f"{self.folder}-{variant}" if variant else self.folder


OPERATOR = Part("mldiagnostics-connection-operator", "operator", {"": {}})
WEBHOOK = Part(
    "mldiagnostics-injection-webhook",
    "webhook",
    {
        "": {},
        "cert-manager": {"certificates.mode": "cert-manager"},
        "provided": {
            "certificates.mode": "provided",
            "certificates.provided.secretName": "mldiagnostics-injection-webhook-tls",
        },
    },
)
PARTS = (OPERATOR, WEBHOOK)
COMMAND_LINE = Image("mldiagnostics-cli", "cli")
XPROF = Image("mldiagnostics-xprof", "cli/xprof")
IMAGES = (*PARTS, COMMAND_LINE, XPROF)
