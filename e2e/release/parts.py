"""The parts that users install: each one's chart, its image, and the values of each variant of its plain YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.paths import REPOSITORY

NAMESPACE = "gke-mldiagnostics"


@dataclass(frozen=True, slots=True)
class Part:
    """One chart. `variants` are the installations that need no helm, by what their names end in."""

    name: str
    """Of the chart, the release and the image."""
    folder: str
    """Of the Dockerfile."""
    variants: Mapping[str, Mapping[str, Any]]

    @property
    def chart(self) -> Path:
        return REPOSITORY / "charts" / self.name

    @property
    def dockerfile(self) -> Path:
        return REPOSITORY / self.folder / "Dockerfile"

    def title(self, variant: str) -> str:
        """What a variant's folder and file are called."""
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
