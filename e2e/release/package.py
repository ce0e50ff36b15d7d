"""`make package`: the images, charts and plain YAML of one version, ready to be pushed to one registry."""

import shutil
import tempfile
from pathlib import Path

from cluster import images
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, say, step

from release import readme
from release.parts import NAMESPACE, PARTS, Part
from release.render import as_yaml, everything, helm

DIST = REPOSITORY / "dist"
# What a package changes: where its images are, in values.yaml and in the image that Chart.yaml names.
DEFAULT_REGISTRY = "  registry: localhost/mldiagnostics\n"
DEFAULT_IMAGE = "image: localhost/mldiagnostics/{name}:0.1.0\n"


def image(part: Part, version: str, registry: str) -> Path:
    """Build a part's image and return its archive.

    Raises:
        ClusterError: it cannot be built; the message says why.
    """
    return images.build(part.dockerfile, REPOSITORY, reference(part, version, registry))


def reference(part: Part, version: str, registry: str) -> str:
    """The image's whole name."""
    return f"{registry.rstrip('/')}/{part.name}:{version}"


def chart(part: Part, version: str, registry: str, folder: Path, source: str = "") -> Path:
    """Package a chart so that it installs this version from this registry without any value.

    Args:
        part: whose chart.
        version: of the chart and of its image.
        registry: of the image.
        folder: the archive is written there.
        source: URL of the repository, for `home` and `sources`; nothing is written where it is empty.

    Raises:
        ClusterError: helm refused, or the chart has another default registry than this module expects.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / part.name
        shutil.copytree(part.chart, copy)
        _replace(copy / "values.yaml", DEFAULT_REGISTRY, f"  registry: {registry.rstrip('/')}\n")
        image_line = f"image: {reference(part, version, registry)}\n"
        _replace(copy / "Chart.yaml", DEFAULT_IMAGE.format(name=part.name), image_line)
        if source:
            _replace(copy / "Chart.yaml", "\nmaintainers:\n", f"\nhome: {source}\nsources: [{source}]\nmaintainers:\n")
        (copy / "README.md").write_text(readme.text(copy))
        helm("package", f"--version={version}", f"--app-version={version}", f"--destination={folder}", chart=copy)
    return folder / f"{part.name}-{version}.tgz"


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if text.count(old) != 1:
        raise ClusterError(f"{path.parent.name}/{path.name} has not exactly one {old.strip()!r}")
    path.write_text(text.replace(old, new))


def package(version: str, registry: str, source: str = "") -> None:
    """Make everything of a version under `dist/` and say how it gets to users."""
    for folder in (DIST / "images", DIST / "charts"):
        folder.mkdir(parents=True, exist_ok=True)
    publishing, installing = [], []
    for part in PARTS:
        archive = DIST / "images" / f"{part.name}-{version}.tar"
        shutil.copy(image(part, version, registry), archive)
        with step(f"the chart and the YAML of the {part.folder}", about_s=3):
            packaged = chart(part, version, registry, DIST / "charts", source)
            manifests = _write_manifests(part, packaged)
        publishing.append(_publishing(part, version, registry, archive, packaged))
        installing.append(_installing(part, packaged, manifests))
    say("\n".join(["\nPublish:", *publishing, "Install each part by one of its lines:", *installing]))


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
    return "\n".join([by_helm, *(f"  kubectl apply -f {_shown(path)} -n {NAMESPACE}" for path in manifests)])


def _shown(path: Path) -> Path:
    return path.relative_to(REPOSITORY)
