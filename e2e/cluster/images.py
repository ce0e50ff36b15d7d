"""Build images with Docker or buildah, and load them into the cluster."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster import buildcontext, packages
from cluster.archive import layer_image
from cluster.locks import exclusive
from cluster.paths import cache
from cluster.progress import ClusterError, echo, step, tail
from cluster.provider import Provider
from cluster.sources import reachable

BASE_IMAGE = "localhost/mldiagnostics-base:1"
PUBLIC_REGISTRY = "registry-1.docker.io"
BASE_PACKAGES = "python3,python3-venv,ca-certificates"
CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy")


def build(dockerfile: Path, context: Path, reference: str) -> Path:
    """Build an image and return its archive (`docker save` format), unless it is up to date.

    The environment variable BASE names the base image. Default: the Dockerfile's own if its registry is reachable,
    else one made from Debian packages.

    Raises:
        ClusterError: the build failed, or this machine cannot build images; the message has a remedy.
    """
    text = dockerfile.read_text()
    base = os.environ.get("BASE") or ("" if reachable(PUBLIC_REGISTRY) else BASE_IMAGE)
    stamp = buildcontext.digest(context, text, base, reference)
    folder = cache() / "images"
    name = re.sub(r"[^A-Za-z0-9.]+", "-", reference)
    archive = folder / f"{name}-{stamp}.tar"
    with exclusive(folder / f".{name}.lock", f"it builds {reference}"):
        if archive.exists():
            echo(f"{reference} is up to date")
            return archive
        with tempfile.TemporaryDirectory() as staged:
            buildcontext.stage(context, text, Path(staged))
            _build(Path(staged), reference, base, archive)
        for outdated in folder.glob(f"{name}-{'[0-9a-f]' * 12}.tar"):
            if outdated != archive:
                outdated.unlink()
    return archive


def load(archive: Path, provider: Provider) -> None:
    """Load an archive into the cluster, unless it was loaded before."""
    mark = provider.folder / "loaded" / archive.name
    if mark.exists():
        return
    with step(f"Loading {archive.name}", about_s=10):
        provider.load_image(archive)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def _build(context: Path, reference: str, base: str, archive: Path) -> None:
    arguments = [f"--tag={reference}"]
    arguments += [f"--build-arg={name}={os.environ[name]}" for name in PROXY_VARIABLES if name in os.environ]
    if base:
        arguments.append(f"--build-arg=BASE={base}")
    if bundle := next((os.environ[name] for name in CA_VARIABLES if os.environ.get(name)), None):
        arguments.append(f"--secret=id=ca,src={bundle}")
    unfinished = archive.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    if _docker_builds():
        if base == BASE_IMAGE:
            _run(["docker", "load", f"--input={_base_archive()}"])
        with step(f"Building {reference} with docker", about_s=60):
            _run(["docker", "buildx", "build", "--load", *arguments, str(context)])
            _run(["docker", "save", f"--output={unfinished}", reference])
    else:
        _require_root()
        packages.install(packages.missing_packages({"buildah": "buildah"}))
        if base == BASE_IMAGE and not _buildah_has(base):
            _run([*_buildah(), "pull", "--quiet", f"docker-archive:{_base_archive()}"])
        with step(f"Building {reference} with buildah", about_s=60):
            _run([*_buildah(), "bud", "--quiet", "--layers", "--isolation=chroot", *arguments, str(context)])
            _run([*_buildah(), "push", "--quiet", reference, f"docker-archive:{unfinished}:{reference}"])
    unfinished.replace(archive)


def _base_archive() -> Path:
    """Return an image of Debian with Python, made once by debootstrap, for machines without a registry."""
    archive = cache() / "images" / "base-1.tar"
    with exclusive(archive.with_name(".base.lock"), "it makes the base image"):
        if archive.exists():
            return archive
        _require_root()
        packages.install(packages.missing_packages({"debootstrap": "debootstrap"}))
        with (
            step("Making a base image from Debian packages", about_s=60),
            tempfile.TemporaryDirectory(dir=archive.parent) as scratch,
        ):
            root = Path(scratch) / "root"
            _run(["debootstrap", "--variant=minbase", f"--include={BASE_PACKAGES}", "bookworm", str(root)])
            layer = Path(scratch) / "layer.tar"
            left_out = [f"--exclude=./{name}" for name in ("var/cache/apt/*", "var/lib/apt/lists/*", "dev/*", "proc/*")]
            _run(["tar", "--numeric-owner", *left_out, "-C", str(root), "-cf", str(layer), "."])
            return layer_image(archive, BASE_IMAGE, layer, entrypoint=["python3"])


def _buildah() -> list[str]:
    """Return the command buildah with a separate store: the user's images are not touched."""
    return [
        "buildah",
        f"--root={cache() / 'buildah'}",
        "--runroot=/run/mldiagnostics-buildah",
        "--storage-driver=overlay",
    ]


def _buildah_has(reference: str) -> bool:
    return (
        subprocess.run([*_buildah(), "inspect", "--type=image", reference], capture_output=True, check=False).returncode
        == 0
    )


def _docker_builds() -> bool:
    """Return whether Docker and its buildx plugin, a separate package in Debian, are available."""
    if shutil.which("docker") is None:
        return False
    commands = (["docker", "version"], ["docker", "buildx", "version"])
    return all(subprocess.run(each, capture_output=True, check=False).returncode == 0 for each in commands)


def _require_root() -> None:
    if os.geteuid() != 0:
        raise ClusterError("images need Docker with the plugin buildx, or root for buildah; start Docker or use sudo")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(
            f"`{' '.join(command)}` ended with {done.returncode}:\n{tail(done.stdout + done.stderr, 30)}"
        )
