"""Files generated from the charts, so that they cannot drift: the charts' READMEs and the folders of `kustomize/`.

These are each part's installations for `kubectl apply -k`. The namespace has a folder of its own: an overlay with
several parts would refuse a second one.
"""

from pathlib import Path

from cluster.paths import REPOSITORY

from release import readme
from release.parts import PARTS, Part
from release.render import Object, as_yaml, namespace_object, ordered

KUSTOMIZE = REPOSITORY / "kustomize"
NAMESPACE_FOLDER = KUSTOMIZE / "namespace"
HEADER = "# Generated from charts/ by `make manifests`; do not edit: patch it from an overlay of your own.\n"


def files() -> dict[Path, str]:
    """Path -> content of every generated file."""
    folders = [_folder(NAMESPACE_FOLDER, {"namespace.yaml": [namespace_object()]})]
    folders += [_folder(KUSTOMIZE / part.title(name), _files(part, name)) for part in PARTS for name in part.variants]
    kustomize = {path: HEADER + text for folder in folders for path, text in folder.items()}
    return kustomize | {part.chart / "README.md": readme.text(part.chart) for part in PARTS}


def _files(part: Part, variant: str) -> dict[str, list[Object]]:
    objects = ordered(part, part.variants[variant])
    definitions = [found for found in objects if is_definition(found)]
    rest = [found for found in objects if not is_definition(found)]
    return {"crds.yaml": definitions, f"{part.folder}.yaml": rest}


def _folder(folder: Path, files: dict[str, list[Object]]) -> dict[Path, str]:
    texts = {folder / name: as_yaml(found) for name, found in files.items() if found}
    listed = "".join(f"  - {path.name}\n" for path in texts)
    kustomization = f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{listed}"
    return {folder / "kustomization.yaml": kustomization, **texts}


def is_definition(found: Object) -> bool:
    """Whether the object defines a kind: those are applied first and outlive the rest."""
    kind: str = found["kind"]
    return kind == "CustomResourceDefinition"


def stale() -> list[Path]:
    """The files that differ from what the charts say now, or that no chart asks for."""
    wanted = files()
    changed = [path for path, content in wanted.items() if not path.exists() or path.read_text() != content]
    return changed + [path for path in sorted(KUSTOMIZE.rglob("*.yaml")) if path not in wanted]


def write() -> list[Path]:
    """Bring all files up to date, and return those that were not; what no chart asks for is deleted."""
    wanted, outdated = files(), stale()
    for path in outdated:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        else:
            path.unlink()
    return outdated
