"""Kubeconfig files with embedded certificates."""

import base64
from pathlib import Path
from typing import Any

import yaml

from cluster.certificates import Certificates


def write_kubeconfig(path: Path, *, server: str, certificates: Certificates, client: str) -> Path:
    """Write a kubeconfig for `server` (URL) with the named client certificate."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(_content(server, certificates, client), sort_keys=False))
    return path


def _content(server: str, certificates: Certificates, client: str) -> dict[str, Any]:
    user = {
        "client-certificate-data": _encoded(certificates.certificate(client)),
        "client-key-data": _encoded(certificates.key(client)),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "mldiagnostics",
                "cluster": {"server": server, "certificate-authority-data": _encoded(certificates.ca)},
            }
        ],
        "users": [{"name": client, "user": user}],
        "contexts": [{"name": "mldiagnostics", "context": {"cluster": "mldiagnostics", "user": client}}],
        "current-context": "mldiagnostics",
    }


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
