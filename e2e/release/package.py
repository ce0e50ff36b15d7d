"""`make package`: the image, the chart and the plain YAML of one version, ready to be pushed to one registry."""

import shutil
import tempfile
from pathlib import Path

from cluster import images
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, say, step

from release.render import CHART, NAMESPACE, RELEASE, as_yaml, everything, helm

DIST = REPOSITORY / "dist"
# The one line of values.yaml that a package changes: where its images are.
DEFAULT_REGISTRY = "  registry: localhost/mldiagnostics\n"


def image(version: str, registry: str) -> Path:
    """Build the operator's image and return its archive.

    Raises:
        ClusterError: it cannot be built; the message says why.
    """
    return images.build(REPOSITORY / "operator/Dockerfile", REPOSITORY, reference(version, registry))


def reference(version: str, registry: str) -> str:
    """The image's whole name."""
    return f"{registry.rstrip('/')}/{RELEASE}:{version}"


def chart(version: str, registry: str, folder: Path) -> Path:
    """Package the chart so that it installs this version from this registry without any value.

    Raises:
        ClusterError: helm refused, or values.yaml has another default registry than this module expects.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / RELEASE
        shutil.copytree(CHART, copy)
        values = copy / "values.yaml"
        text = values.read_text()
        if text.count(DEFAULT_REGISTRY) != 1:
            raise ClusterError(f"{CHART}/values.yaml has not exactly one line {DEFAULT_REGISTRY.strip()!r}")
        values.write_text(text.replace(DEFAULT_REGISTRY, f"  registry: {registry.rstrip('/')}\n"))
        helm("package", f"--version={version}", f"--app-version={version}", f"--destination={folder}", chart=copy)
    return folder / f"{RELEASE}-{version}.tgz"


def package(version: str, registry: str) -> None:
    """Make everything of a version under `dist/` and say how it gets to users."""
    for folder in (DIST / "images", DIST / "charts"):
        folder.mkdir(parents=True, exist_ok=True)
    archive = DIST / "images" / f"{RELEASE}-{version}.tar"
    shutil.copy(image(version, registry), archive)
    with step("the chart and the YAML", about_s=3):
        packaged = chart(version, registry, DIST / "charts")
        manifest = DIST / "operator.yaml"
        manifest.write_text(as_yaml(everything(chart=packaged)))
    where = {path: path.relative_to(REPOSITORY) for path in (archive, packaged, manifest)}
    say(
        f"""
Publish:
  docker load -i {where[archive]} && docker push {reference(version, registry)}
  (or: skopeo copy docker-archive:{where[archive]} docker://{reference(version, registry)})
  helm push {where[packaged]} oci://{registry.rstrip("/")}/charts
Install, by one of:
  helm install {RELEASE} {where[packaged]} -n {NAMESPACE} --create-namespace
  kubectl apply -f {where[manifest]} -n {NAMESPACE}"""
    )
