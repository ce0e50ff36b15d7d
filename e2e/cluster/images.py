"""Build images with Docker or buildah, and load them into the cluster."""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cluster import baseimage, buildah, buildcontext, docker, platforms
from cluster.durations import Expected
from cluster.locks import exclusive
from cluster.paths import cache
from cluster.progress import ClusterError, echo, step
from cluster.provider import Provider

CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy")


def loading(reference: str) -> Expected:
    """Return the step that loads an image into a cluster."""
    return Expected(f"Loading {_file_name(reference)}", 10)


def pending(references: Iterable[str]) -> list[Expected]:
    """Return the steps that build the images of these names which were never built; others may still be outdated."""
    builder = "docker" if docker.builder_obstacle() is None else "buildah"
    missing = [reference for reference in references if not any(_folder().glob(f"{_file_name(reference)}-*.tar"))]
    steps = [_building(reference, builder) for reference in missing]
    base = [baseimage.MAKING] if steps and builder == "buildah" and baseimage.is_missing() else []
    return [*base, *steps]


def obstacle() -> str | None:
    """Return the reason why images cannot be built here, with a remedy; None if they can."""
    builder = docker.builder_obstacle()
    return builder if builder is not None and buildah.obstacle() is not None else None


def build(
    dockerfile: Path, context: Path, reference: str, *, platform: str = "", labels: Mapping[str, str] | None = None
) -> Path:
    """Build an image and return its archive (`docker save` format), unless it is up to date.

    The environment variable BASE names the base image. Default: the Dockerfile's own if it can be pulled, else one made
    from Debian packages.

    Args:
        dockerfile: The Dockerfile.
        context: Folder of the files that it copies.
        reference: Full name of the image.
        platform: Such as `linux/arm64`; empty is that of this machine.
        labels: Labels beside those of the Dockerfile.

    Raises:
        ClusterError: the build failed, or this machine cannot build images; the message has a remedy.
    """
    text = dockerfile.read_text()
    no_docker = docker.builder_obstacle()
    with_docker = no_docker is None
    if not with_docker and buildah.obstacle():
        raise ClusterError(f"{reference}: images cannot be built here: {no_docker}")
    if platform and (reason := platforms.obstacle(platform, with_docker=with_docker)):
        raise ClusterError(f"PLATFORM={platform}: cannot be built here: {reason}")
    base = baseimage.base_of(text, with_docker=with_docker)
    if base == baseimage.OWN_BASE and platform not in ("", platforms.OWN):
        raise ClusterError(
            f"PLATFORM={platform}: cannot be built here: no registry has the base image, and one made from Debian "
            f"packages is for {platforms.OWN}; set BASE to an image of that platform"
        )
    options = [f"--platform={platform}"] if platform else []
    options += [f"--label={name}={value}" for name, value in (labels or {}).items()]
    stamp = buildcontext.digest(context, text, base, reference, *options)
    folder, name = _folder(), _file_name(reference)
    archive = folder / f"{name}-{stamp}.tar"
    with exclusive(folder / f".{name}.lock", f"it builds {reference}"):
        if archive.exists():
            echo(f"{reference} is up to date")
            return archive
        unfinished = archive.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as staged:
            buildcontext.stage(context, text, Path(staged))
            builder = _with_docker if with_docker else _with_buildah
            builder(Path(staged), reference, base, unfinished, options)
        unfinished.replace(archive)
        for outdated in folder.glob(f"{name}-{'[0-9a-f]' * 12}.tar"):
            if outdated != archive:
                outdated.unlink()
    return archive


def load(archive: Path, provider: Provider) -> None:
    """Load an archive into the cluster, unless it was loaded before."""
    mark = provider.folder / "loaded" / archive.name
    if mark.exists():
        return
    expected = loading(re.sub(r"-[0-9a-f]{12}$", "", archive.stem))
    with step(expected.title, about_s=expected.usual_s):
        provider.load_image(archive)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def build_arguments(environment: Mapping[str, str], base: str) -> list[str]:
    """Return the arguments of a build: proxies in both cases, the base, and the CA bundle as a secret."""
    arguments = [f"--build-arg=BASE={base}"] if base else []
    for name in PROXY_VARIABLES:
        if value := environment.get(name) or environment.get(name.upper()):
            arguments += [f"--build-arg={name}={value}", f"--build-arg={name.upper()}={value}"]
    if bundle := next((environment[name] for name in CA_VARIABLES if environment.get(name)), None):
        arguments.append(f"--secret=id=ca,src={bundle}")
    return arguments


def _building(reference: str, builder: str) -> Expected:
    return Expected(f"Building {reference} with {builder}", 60)


def _folder() -> Path:
    return cache() / "images"


def _file_name(reference: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", reference)


def _with_docker(context: Path, reference: str, base: str, archive: Path, options: Sequence[str]) -> None:
    if base == baseimage.OWN_BASE:
        docker.load(baseimage.own_base())
    expected = _building(reference, "docker")
    with step(expected.title, about_s=expected.usual_s):
        docker.build(context, reference, [*build_arguments(os.environ, base), *options])
        docker.save(reference, archive)


def _with_buildah(context: Path, reference: str, base: str, archive: Path, options: Sequence[str]) -> None:
    buildah.install()
    if base == baseimage.OWN_BASE:
        buildah.load(base, baseimage.own_base())
    expected = _building(reference, "buildah")
    with step(expected.title, about_s=expected.usual_s):
        buildah.build(context, reference, [*build_arguments(os.environ, base), *options], archive)
