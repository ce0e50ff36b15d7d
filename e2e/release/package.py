"""`make package`: images, charts and plain YAML of one version for one registry."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster import buildcontext, docker, images
from cluster.paths import REPOSITORY
from cluster.platforms import architecture
from cluster.progress import ClusterError, echo, step

from release import readme, sbom
from release.parts import DEFAULT_REGISTRY, IMAGES, NAMESPACE, PARTS, Image, Part
from release.render import as_yaml, everything, helm

DIST = REPOSITORY / "dist"


def image(part: Image, version: str, registry: str, platform: str = "", source: str = "") -> Path:
    """Build an image and return its archive.

    Args:
        part: The image to build.
        version: Version of the image.
        registry: Registry of the image.
        platform: Such as `linux/arm64`, which the name of the image then ends with; empty is that of this machine.
        source: URL of the repository.

    Raises:
        ClusterError: the build failed; the message has the reason.
    """
    name = reference(part, version, registry) + (f"-{architecture(platform)}" if platform else "")
    return images.build(part.dockerfile, REPOSITORY, name, platform=platform, labels=labels(version, source))


def labels(version: str, source: str) -> dict[str, str]:
    """Return the labels of an image that its Dockerfile does not have."""
    known = {"version": version, "revision": _git("rev-parse", "HEAD"), "source": source}
    known["base.name"], _, known["base.digest"] = os.environ.get("BASE", "").partition("@")
    return {f"org.opencontainers.image.{name}": value for name, value in known.items() if value}


def pinned_base(dockerfile: str) -> str:
    """Return the base of a Dockerfile with the digest that its registry has now; empty if that cannot be read."""
    named = re.search(r"^ARG BASE=(\S+)", dockerfile, re.MULTILINE)
    if named is None or docker.builder_obstacle() is not None:
        return ""
    digest = docker.digest(named[1])
    return f"{named[1]}@{digest}" if digest else ""


def image_archive(part: Image, version: str, platform: str = "") -> Path:
    """Return the path of an image in the package."""
    return DIST / "images" / f"{part.name}-{version}{f'-{architecture(platform)}' if platform else ''}.tar"


def chart_archive(part: Part, version: str) -> Path:
    """Return the path of a chart in the package."""
    return DIST / "charts" / f"{part.name}-{version}.tgz"


def sbom_file(part: Image, version: str) -> Path:
    """Return the path of a bill of materials in the package."""
    return DIST / "sbom" / f"{part.name}-{version}.spdx.json"


def files(version: str) -> list[Path]:
    """Return the files of a release, without the images, which a registry has."""
    manifests = [_manifest(part, variant) for part in PARTS for variant in part.variants]
    others = [chart_archive(part, version) for part in PARTS] + [sbom_file(part, version) for part in IMAGES]
    wheels = sorted((DIST / "wheels").glob(f"*-{version.replace('-rc.', 'rc')}-*.whl"))
    return [path for path in (*manifests, *others, *wheels) if path.exists()]


def reference(part: Image, version: str, registry: str) -> str:
    """Return the full name of the image."""
    return f"{registry.rstrip('/')}/{part.name}:{version}"


def chart(part: Part, version: str, registry: str, folder: Path, source: str = "") -> Path:
    """Package a chart with this version and registry as its defaults.

    Args:
        part: The part to package.
        version: Version of the chart and of its image.
        registry: Registry of the image.
        folder: Folder for the archive.
        source: URL of the repository, for `home` and `sources`; empty: the chart has neither.

    Raises:
        ClusterError: helm failed, or the chart has an unexpected default registry.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / part.name
        shutil.copytree(part.chart, copy)
        _replace(copy / "values.yaml", f"  registry: {DEFAULT_REGISTRY}\n", f"  registry: {registry.rstrip('/')}\n")
        image_line = f"image: {reference(part, version, registry)}\n"
        _replace(copy / "Chart.yaml", f"image: {part.default_image}\n", image_line)
        if source:
            _replace(copy / "Chart.yaml", "\nmaintainers:\n", f"\nhome: {source}\nsources: [{source}]\nmaintainers:\n")
        (copy / "README.md").write_text(readme.text(copy))
        helm("package", f"--version={version}", f"--app-version={version}", f"--destination={folder}", chart=copy)
    return folder / f"{part.name}-{version}.tgz"


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if text.count(old) != 1:
        raise ClusterError(f"{path.parent.name}/{path.name}: must contain {old.strip()!r} exactly once")
    path.write_text(text.replace(old, new))


def package(version: str, registry: str, source: str = "", platforms: Sequence[str] = ()) -> None:
    """Write all artifacts of a version to `dist/` and print how to publish and install them.

    Args:
        version: Version of charts and images.
        registry: Registry of the images.
        source: URL of the repository, for charts and images.
        platforms: Platforms of the images; empty is that of this machine.

    Raises:
        ClusterError: an artifact cannot be made; the message has the reason.
    """
    for folder in (DIST / "images", DIST / "charts", DIST / "sbom"):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.environ.get("BASE") and (base := pinned_base(PARTS[0].dockerfile.read_text())):
        os.environ["BASE"] = base  # one base for all images, also if its tag moves meanwhile
        echo(f"The base of all images is {base}")
    publishing, installing = [], []
    for part in IMAGES:
        archives = [image_archive(part, version, each) for each in platforms or [""]]
        for each, archive in zip(platforms or [""], archives, strict=True):
            shutil.copy(image(part, version, registry, each, source), archive)
        sbom_file(part, version).write_text(json.dumps(_bill(part, version), indent=1) + "\n")
        publishing += [f"  {_shown(path)}" for path in (*archives, sbom_file(part, version))]
    for part in PARTS:
        with step(f"Packaging the chart and the YAML of the {part.folder}", about_s=3):
            packaged = chart(part, version, registry, DIST / "charts", source)
            manifests = _write_manifests(part, packaged)
        publishing.append(f"  {_shown(packaged)}")
        installing.append(_installing(part, packaged, manifests))
    options = f"VERSION={version} REGISTRY={registry}" + (f" PLATFORM={','.join(platforms)}" if platforms else "")
    echo("\n".join(["\nMade:", *publishing, f"Publish them with `make publish {options}` (DRY_RUN=1 prints how)."]))
    echo("\n".join(["Install each part with one of its lines:", *installing]))


def _write_manifests(part: Part, packaged: Path) -> list[Path]:
    paths = []
    for variant, values in part.variants.items():
        paths.append(_manifest(part, variant))
        paths[-1].write_text(as_yaml(everything(part, values, chart=packaged)))
    return paths


def _manifest(part: Part, variant: str) -> Path:
    return DIST / f"{part.title(variant)}.yaml"


def _bill(part: Image, version: str) -> dict[str, Any]:
    text = part.dockerfile.read_text()
    members = [source for source in buildcontext.copied(text) if (REPOSITORY / source / "pyproject.toml").exists()]
    names = [tomllib.loads((REPOSITORY / each / "pyproject.toml").read_text())["project"]["name"] for each in members]
    named = re.search(r"^ARG BASE=(\S+)", text, re.MULTILINE)
    return sbom.document(
        part.name,
        version,
        members=names,
        packages=sbom.locked((part.dockerfile.parent / "requirements.lock").read_text()),
        base=os.environ.get("BASE") or (named[1] if named else "unknown"),
        created=_git("show", "--no-patch", "--format=%cd", "--date=format:%Y-%m-%dT%H:%M:%SZ", "HEAD"),
    )


def _git(*arguments: str) -> str:
    """Return the output of git in the repository; empty where there is no repository."""
    command = ["git", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _installing(part: Part, packaged: Path, manifests: list[Path]) -> str:
    by_helm = f"  helm install {part.name} {_shown(packaged)} -n {NAMESPACE} --create-namespace"
    return "\n".join([by_helm, *(f"  kubectl apply -f {_shown(path)}" for path in manifests)])


def _shown(path: Path) -> Path:
    return path.relative_to(REPOSITORY)
