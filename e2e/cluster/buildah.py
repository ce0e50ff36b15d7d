"""Build images with buildah as root, on machines without Docker, in a store of its own."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cluster import packages
from cluster.command import run
from cluster.paths import cache


def obstacle() -> str | None:
    """Return the reason why buildah cannot run here, with a remedy; None if it can."""
    return None if os.geteuid() == 0 else "buildah needs root"


def build(context: Path, reference: str, arguments: Sequence[str], archive: Path) -> None:
    """Build an image from a context with a Dockerfile, and write its archive."""
    _buildah("bud", "--quiet", "--layers", "--isolation=chroot", f"--tag={reference}", *arguments, str(context))
    _buildah("push", "--quiet", reference, f"docker-archive:{archive}:{reference}")


def install() -> None:
    """Install buildah if it is missing."""
    packages.install(packages.missing_packages({"buildah": "buildah"}))


def load(reference: str, archive: Path) -> None:
    """Load the image of an archive into the store, unless it is there."""
    inspection = subprocess.run(_command("inspect", "--type=image", reference), capture_output=True, check=False)
    if inspection.returncode:
        _buildah("pull", "--quiet", f"docker-archive:{archive}")


def _buildah(*arguments: str) -> None:
    run(_command(*arguments), title=f"buildah {' '.join(arguments)}", logs_to_output=True)


def _command(*arguments: str) -> list[str]:
    store = [f"--root={cache() / 'buildah'}", "--runroot=/run/mldiagnostics-buildah", "--storage-driver=overlay"]
    return ["buildah", *store, *arguments]
