"""The base of built images: the one that the Dockerfile names, else one made from Debian packages."""

import functools
import os
import re
import tempfile
from pathlib import Path

from cluster import docker, packages
from cluster.archive import layer_image
from cluster.command import run
from cluster.durations import Expected
from cluster.locks import exclusive
from cluster.paths import cache
from cluster.progress import ClusterError, step
from cluster.sources import reachable

OWN_BASE = "localhost/mldiagnostics-base:1"
PUBLIC_REGISTRY = "registry-1.docker.io"
MAKING = Expected("Making a base image from Debian packages", 45)
DEBIAN = "bookworm"
# The folders of / are links into /usr from the start; else usrmerge makes them, which brings perl.
MERGED = "/usr/share/mmdebstrap/hooks/merged-usr"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEBIAN_PACKAGES = "python3,python3-venv,ca-certificates"


def base_of(dockerfile: str, *, with_docker: bool) -> str:
    """Return the value of the build argument BASE; empty for the Dockerfile's own.

    The environment variable BASE comes first. A Docker engine pulls the image itself: it may reach registries
    that this process does not, and the other way round.

    Raises:
        ClusterError: the image cannot be pulled, and another one cannot be made here.
    """
    if chosen := os.environ.get("BASE"):
        return chosen
    named = re.search(r"^ARG BASE=(\S+)", dockerfile, re.MULTILINE)
    if not with_docker or named is None:
        return "" if reachable(PUBLIC_REGISTRY) else OWN_BASE
    if (failure := _pull_failure(named[1])) is None:
        return ""
    if reason := obstacle():
        raise ClusterError(
            f"{named[1]}: the Docker engine cannot pull it ({failure}); set a network or a proxy for the engine, "
            f"or set BASE to an image that it has; another base cannot be made here: {reason}"
        )
    return OWN_BASE


def obstacle() -> str | None:
    """Return the reason why a base cannot be made from Debian packages; None if it can."""
    return None if os.geteuid() == 0 else "mmdebstrap needs root"


def is_missing() -> bool:
    """Return whether a build without Docker has to make the base first."""
    return not _archive().exists() and not reachable(PUBLIC_REGISTRY)


def own_base() -> Path:
    """Return the archive of an image of Debian with Python, made once, for machines without a registry.

    Raises:
        ClusterError: it cannot be made.
    """
    archive = _archive()
    with exclusive(archive.with_name(".base.lock"), "it makes the base image"):
        if archive.exists():
            return archive
        if reason := obstacle():
            raise ClusterError(f"{OWN_BASE}: cannot be made: {reason}; use sudo, or set BASE to an image")
        packages.install(_missing_packages())
        with (
            step(MAKING.title, about_s=MAKING.usual_s),
            tempfile.TemporaryDirectory(dir=archive.parent) as scratch,
        ):
            layer = Path(scratch) / "layer.tar"
            options = [f"--include={DEBIAN_PACKAGES}", "--variant=minbase", "--skip=output/dev", f"--hook-dir={MERGED}"]
            run(["mmdebstrap", *options, DEBIAN, str(layer)], logs_to_output=True)
            return layer_image(archive, OWN_BASE, layer, entrypoint=["python3"])


def _missing_packages() -> list[str]:
    """Return the Debian packages to install: the program, and on another distribution the keys of Debian's archive."""
    keys = [] if KEYS.exists() else [KEYS.stem]
    return [*packages.missing_packages({"mmdebstrap": "mmdebstrap"}), *keys]


def _archive() -> Path:
    return cache() / "images" / "base-1.tar"


@functools.cache
def _pull_failure(image: str) -> str | None:
    with step(f"Pulling {image}", about_s=20):
        return docker.pull_failure(image)
