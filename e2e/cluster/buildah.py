"""Build images with buildah as root, on machines without Docker, in a store of its own.

One build at a time uses the store: containers in it belong to builds that were killed. After each build it has the
images and stages of the last contents of each Dockerfile, so that the next build makes the changed layers alone.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cluster import ambient, host, packages
from cluster.command import run
from cluster.locks import exclusive
from cluster.paths import cache
from cluster.progress import ClusterError, echo

# Ends the name of a stage, after that of its image.
_STAGE = "-stage-"
# Name without registry and version, with the architecture of an image for another machine.
_NAME = re.compile(rf"(?:.*/)?([^/:]+)(?::[^/]*?(-amd64|-arm64)?(?:{_STAGE}[^/]+)?)?")


def obstacle() -> str | None:
    """Return the reason why buildah cannot run here, with a remedy; None if it can."""
    return None if os.geteuid() == 0 else "buildah needs root"


def install() -> None:
    """Install buildah if it is missing."""
    packages.install(packages.missing_packages({"buildah": "buildah"}))


def build(
    context: Path, reference: str, arguments: Sequence[str], archive: Path, *, base: tuple[str, Path] | None = None
) -> None:
    """Build an image from a context with a Dockerfile, and write its archive.

    Args:
        context: Folder of the Dockerfile and of the files that it copies.
        reference: Full name of the image.
        arguments: Options of `buildah bud`.
        archive: File to write, in the format of `docker save`.
        base: Name and archive of an image that the Dockerfile is based on; None: buildah pulls its base.

    Raises:
        ClusterError: the build failed.
    """
    with exclusive(cache() / "buildah.lock", "it builds an image"):
        try:
            _build(context, reference, arguments, archive, base)
        except ClusterError:
            if _is_readable():
                raise
            echo(f"{_root()}: buildah cannot read this store of images; it is removed and made again")
            _remove()
            _build(context, reference, arguments, archive, base)


def stages(dockerfile: str) -> list[str]:
    """Return the names of the stages that a Dockerfile builds for its last one."""
    named = re.findall(r"^FROM\s+(?:--\S+\s+)*\S+(?:\s+AS\s+(\S+))?\s*$", dockerfile, re.MULTILINE | re.IGNORECASE)
    return [name for name in named[:-1] if name]


def superseded(names: Iterable[str], reference: str) -> list[str]:
    """Return the names in the store that an image takes the place of: those of its other versions and registries."""
    return [
        name for name in names if name.partition(_STAGE)[0] != reference and _identity(name) == _identity(reference)
    ]


def _identity(name: str) -> tuple[str | None, ...]:
    match = _NAME.fullmatch(name)
    return match.groups() if match else (name,)


def _build(
    context: Path, reference: str, arguments: Sequence[str], archive: Path, base: tuple[str, Path] | None
) -> None:
    archive.unlink(missing_ok=True)  # buildah does not write to one that exists
    _buildah("rm", "--all")
    if base is not None and _run("inspect", "--type=image", base[0]).returncode:
        _buildah("pull", "--quiet", f"docker-archive:{base[1]}")
    command = ("bud", "--quiet", "--layers", "--isolation=chroot", *arguments)
    _buildah(*command, f"--tag={reference}", str(context))
    _buildah("push", "--quiet", reference, f"docker-archive:{archive}:{reference}")
    # Without a name a stage would be pruned: the image does not descend from it. All its layers exist.
    for stage in stages((context / "Dockerfile").read_text()):
        _buildah(*command, f"--target={stage}", f"--tag={reference}{_STAGE}{stage}", str(context))
    listed: list[dict[str, Any]] = json.loads(_buildah("images", "--json"))
    if outdated := superseded((name for image in listed for name in image.get("names") or ()), reference):
        _buildah("rmi", *outdated)
    _buildah("rmi", "--prune")


def _is_readable() -> bool:
    """Return whether buildah can read all images of the store."""
    listed = _run("images", "--all", "--quiet", "--no-trunc")
    ids = set(listed.stdout.split())
    return not listed.returncode and not any(_run("inspect", "--type=image", each).returncode for each in ids)


def _remove() -> None:
    """Remove the store, and the mounts of killed builds in it."""
    host.unmount([_root(), _run_root()])
    for folder in (_root(), _run_root()):
        shutil.rmtree(folder, ignore_errors=True)


def _buildah(*arguments: str) -> str:
    return run(_command(*arguments), title=f"buildah {' '.join(arguments)}", logs_to_output=True)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*arguments), env=ambient.environment(), capture_output=True, text=True, check=False)


def _command(*arguments: str) -> list[str]:
    return ["buildah", f"--root={_root()}", f"--runroot={_run_root()}", "--storage-driver=overlay", *arguments]


def _root() -> Path:
    return cache() / "buildah"


def _run_root() -> Path:
    """Return the folder of the mounts, one per store, on a file system that a restart of the machine empties."""
    return Path("/run/mldiagnostics-buildah", hashlib.sha256(str(_root()).encode()).hexdigest()[:12])
