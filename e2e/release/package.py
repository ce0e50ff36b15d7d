"""`make package`: images, charts and plain YAML of one version for one registry."""

import shutil
import tempfile
from pathlib import Path

from cluster import images
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, echo, step

from release import readme
from release.parts import DEFAULT_REGISTRY, NAMESPACE, PARTS, Part
from release.render import as_yaml, everything, helm

DIST = REPOSITORY / "dist"


def image(part: Part, version: str, registry: str) -> Path:
    """Build the image of a part and return its archive.

    Raises:
        ClusterError: the build failed; the message has the reason.
    """
    return images.build(part.dockerfile, REPOSITORY, reference(part, version, registry))


def reference(part: Part, version: str, registry: str) -> str:
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


def package(version: str, registry: str, source: str = "") -> None:
    """Write all artifacts of a version to `dist/` and print how to publish and install them."""
    for folder in (DIST / "images", DIST / "charts"):
        folder.mkdir(parents=True, exist_ok=True)
    publishing, installing = [], []
    for part in PARTS:
        archive = DIST / "images" / f"{part.name}-{version}.tar"
        shutil.copy(image(part, version, registry), archive)
        with step(f"Packaging the chart and the YAML of the {part.folder}", about_s=3):
            packaged = chart(part, version, registry, DIST / "charts", source)
            manifests = _write_manifests(part, packaged)
        publishing.append(_publishing(part, version, registry, archive, packaged))
        installing.append(_installing(part, packaged, manifests))
    echo("\n".join(["\nPublish:", *publishing, "Install each part with one of its lines:", *installing]))


def _write_manifests(part: Part, packaged: Path) -> list[Path]:
    paths = []
    for variant, values in part.variants.items():
        paths.append(DIST / f"{part.title(variant)}.yaml")
        paths[-1].write_text(as_yaml(everything(part, values, chart=packaged)))
    return paths


def _publishing(part: Part, version: str, registry: str, archive: Path, packaged: Path) -> str:
    name = reference(part, version, registry)
    return f"""\
  docker load -i {_shown(archive)} && docker push {name}
  (or: skopeo copy docker-archive:{_shown(archive)} docker://{name})
  helm push {_shown(packaged)} oci://{registry.rstrip("/")}/charts"""


def _installing(part: Part, packaged: Path, manifests: list[Path]) -> str:
    by_helm = f"  helm install {part.name} {_shown(packaged)} -n {NAMESPACE} --create-namespace"
    return "\n".join([by_helm, *(f"  kubectl apply -f {_shown(path)}" for path in manifests)])


def _shown(path: Path) -> Path:
    return path.relative_to(REPOSITORY)
