"""Go modules of other projects, which have their manifests and definitions."""

import json
from pathlib import Path

from cluster.command import run
from cluster.paths import E2E
from cluster.sources import go, go_environment


def module_folder(module: str, pinned: str) -> Path:
    """Return the folder of a Go module; download it if it is missing.

    Args:
        module: Path of the module.
        pinned: Folder in `e2e/tools` of the module that pins its version.

    Raises:
        ClusterError: The module cannot be downloaded.
    """
    command = [go(), "mod", "download", "-json", module]
    downloaded = run(command, folder=E2E / "tools" / pinned, environment=go_environment(), logs_to_output=True)
    return Path(json.loads(downloaded)["Dir"])
