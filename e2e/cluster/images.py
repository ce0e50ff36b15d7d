"""Build images with Docker or buildah, and load them into the cluster."""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cluster import ambient, baseimage, buildah, buildcontext, docker, platforms
from cluster.durations import Expected
from cluster.locks import exclusive
from cluster.paths import cache
from cluster.progress import ClusterError, echo, step
from cluster.provider import Provider

_STAMP = "[0-9a-f]" * 12
CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy")
# Archives of an image with different contents, of several checkouts; all images of one content have 1.2 GB.
ARCHIVES_KEPT = 4


def loading(reference: str) -> Expected:
    """Return the step that loads an image into a cluster."""
    return Expected(f"Loading {_file_name(reference)}", 10)


def pending(wanted: Iterable[tuple[Path, str]], context: Path) -> list[Expected]:
    """Return the steps that build these images, each a Dockerfile and a full name, unless they are up to date."""
    builder = "docker" if docker.builder_obstacle() is None else "buildah"
    missing = [reference for dockerfile, reference in wanted if not _is_built(dockerfile, context, reference)]
    base = [baseimage.MAKING] if missing and builder == "buildah" and baseimage.is_missing() else []
    return [*base, *(_building(reference, builder) for reference in missing)]


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
            archive.touch()
            echo(f"{reference} is up to date")
            return archive
        for killed in folder.glob(f"{name}-{_STAMP}.unfinished"):
            killed.unlink()
        unfinished = archive.with_suffix(".unfinished")
        with tempfile.TemporaryDirectory() as staged:
            buildcontext.stage(context, text, Path(staged))
            builder = _with_docker if with_docker else _with_buildah
            builder(Path(staged), reference, base, unfinished, options)
        unfinished.replace(archive)
        used = {path: path.stat().st_mtime for path in folder.glob(f"{name}-{_STAMP}.tar")}
        for path in outdated(used, archive):
            path.unlink()
    return archive


def outdated(used: Mapping[Path, float], newest: Path) -> list[Path]:
    """Return the archives of one image to remove, from the time of the last use of each: all but the last few."""
    others = sorted((path for path in used if path != newest), key=lambda path: used[path], reverse=True)
    return others[ARCHIVES_KEPT - 1 :]


def load(archive: Path, provider: Provider) -> None:
    """Load an archive into the cluster, unless it was the last one of its image that was loaded."""
    image = re.sub(r"-[0-9a-f]{12}$", "", archive.stem)
    mark = provider.folder / "loaded" / image
    if mark.is_file() and mark.read_text() == archive.name:
        return
    expected = loading(image)
    with step(expected.title, about_s=expected.usual_s):
        provider.load_image(archive)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(archive.name)


def build_arguments(environment: Mapping[str, str], base: str) -> list[str]:
    """Return the arguments of a build: proxies in both cases, the base, and the CA bundle as a secret."""
    arguments = [f"--build-arg=BASE={base}"] if base else []
    for name in PROXY_VARIABLES:
        if value := environment.get(name) or environment.get(name.upper()):
            arguments += [f"--build-arg={name}={value}", f"--build-arg={name.upper()}={value}"]
    if bundle := next((environment[name] for name in CA_VARIABLES if environment.get(name)), None):
        arguments.append(f"--secret=id=ca,src={bundle}")
    return arguments


def _is_built(dockerfile: Path, context: Path, reference: str) -> bool:
    """Return whether there is an archive of these contents; this tries all bases instead of looking for one."""
    choices = [(base, reference) for base in (os.environ.get("BASE", ""), "", baseimage.OWN_BASE)]
    stamps = buildcontext.digests(context, dockerfile.read_text(), choices)
    return any((_folder() / f"{_file_name(reference)}-{stamp}.tar").exists() for stamp in stamps)


def _building(reference: str, builder: str) -> Expected:
    """Return the step that builds an image; a change of its contents takes less than the first build."""
    if any(_folder().glob(f"{_file_name(reference)}-{_STAMP}.tar")):
        return Expected(f"Building {reference} again with {builder}", 25)
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
        docker.build(context, reference, [*build_arguments(ambient.environment(), base), *options])
        docker.save(reference, archive)


def _with_buildah(context: Path, reference: str, base: str, archive: Path, options: Sequence[str]) -> None:
    buildah.install()
    own = (base, baseimage.own_base()) if base == baseimage.OWN_BASE else None
    expected = _building(reference, "buildah")
    with step(expected.title, about_s=expected.usual_s):
        buildah.build(context, reference, [*build_arguments(ambient.environment(), base), *options], archive, base=own)
