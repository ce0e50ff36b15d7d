"""Platforms of images: that of this machine, and others where an emulator runs their programs."""

from pathlib import Path

from cluster import docker
from cluster.sources import ARCHITECTURE

OWN = f"linux/{ARCHITECTURE}"
SUPPORTED = ("linux/amd64", "linux/arm64")
_QEMU = {"amd64": "x86_64", "arm64": "aarch64"}
_EMULATORS = Path("/proc/sys/fs/binfmt_misc")
_REMEDY = "install an emulator, such as the Debian package qemu-user-static, or build on a machine of that kind"


def parse(text: str) -> list[str]:
    """Return the platforms of a comma-separated list.

    Raises:
        ValueError: a platform is not supported.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in SUPPORTED]:
        raise ValueError(f"PLATFORM={unknown[0]}: not supported; use {' or '.join(SUPPORTED)}, or both with a comma")
    return list(dict.fromkeys(names))


def architecture(platform: str) -> str:
    """Return `arm64` of `linux/arm64`."""
    return platform.partition("/")[2]


def obstacle(platform: str, *, with_docker: bool, emulators: Path = _EMULATORS) -> str | None:
    """Return the reason why images for a platform cannot be built here, with a remedy; None if they can."""
    if platform == OWN:
        return None
    if with_docker:
        built = docker.platforms()
        return None if platform in built else f"Docker builds for {', '.join(built) or OWN}; {_REMEDY}"
    is_there = (emulators / f"qemu-{_QEMU[architecture(platform)]}").exists()
    return None if is_there else f"buildah builds for {OWN}; {_REMEDY}"
