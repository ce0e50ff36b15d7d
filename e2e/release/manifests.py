"""The folder `kustomize/`: the chart's default installation for `kubectl apply -k`, generated, so it cannot drift."""

from pathlib import Path

from cluster.paths import REPOSITORY

from release.render import Object, as_yaml, everything

KUSTOMIZE = REPOSITORY / "kustomize"
HEADER = "# Generated from charts/ by `make manifests`; do not edit: patch it from an overlay of your own.\n"
KUSTOMIZATION = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - crds.yaml
  - operator.yaml
"""


def files() -> dict[Path, str]:
    """Path -> content of every generated file."""
    objects = everything()
    definitions = [found for found in objects if is_definition(found)]
    rest = [found for found in objects if not is_definition(found)]
    return {
        KUSTOMIZE / "kustomization.yaml": HEADER + KUSTOMIZATION,
        KUSTOMIZE / "crds.yaml": HEADER + as_yaml(definitions),
        KUSTOMIZE / "operator.yaml": HEADER + as_yaml(rest),
    }


def is_definition(found: Object) -> bool:
    """Whether the object defines a kind: those are applied first and outlive the rest."""
    kind: str = found["kind"]
    return kind == "CustomResourceDefinition"


def stale() -> list[Path]:
    """The generated files that differ from what the chart says now."""
    return [path for path, content in files().items() if not path.exists() or path.read_text() != content]


def write() -> None:
    """Write the generated files."""
    KUSTOMIZE.mkdir(exist_ok=True)
    for path, content in files().items():
        path.write_text(content)
