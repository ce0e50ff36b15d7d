"""Files generated from the charts: their READMEs, and `kustomize/` for `kubectl apply -k`.

The namespace has its own folder: kustomize rejects an overlay in which two parts contain it.
"""

from pathlib import Path

from cluster.paths import REPOSITORY

from release import readme
from release.parts import PARTS, Part
from release.render import Object, as_yaml, namespace_object, ordered

KUSTOMIZE = REPOSITORY / "kustomize"
NAMESPACE_FOLDER = KUSTOMIZE / "namespace"
HEADER = "# Generated from charts/ by `make manifests`; do not edit: patch it in your own overlay.\n"


def files() -> dict[Path, str]:
    """Return the content of every generated file by path."""
    folders = [_folder(NAMESPACE_FOLDER, {"namespace.yaml": [namespace_object()]})]
    folders += [_folder(KUSTOMIZE / part.title(name), _files(part, name)) for part in PARTS for name in part.variants]
    kustomize = {path: HEADER + text for folder in folders for path, text in folder.items()}
    return kustomize | {part.chart / "README.md": readme.text(part.chart) for part in PARTS}


def _files(part: Part, variant: str) -> dict[str, list[Object]]:
    objects = ordered(part, part.variants[variant])
    definitions = [each for each in objects if is_definition(each)]
    rest = [each for each in objects if not is_definition(each)]
    return {"crds.yaml": definitions, f"{part.folder}.yaml": rest}


def _folder(folder: Path, files: dict[str, list[Object]]) -> dict[Path, str]:
    texts = {folder / name: as_yaml(objects) for name, objects in files.items() if objects}
    listed = "".join(f"  - {path.name}\n" for path in texts)
    kustomization = f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{listed}"
    return {folder / "kustomization.yaml": kustomization, **texts}


def is_definition(item: Object) -> bool:
    """Return whether the object is a CRD: these are applied first and kept on removal."""
    kind: str = item["kind"]
    return kind == "CustomResourceDefinition"


def stale() -> list[Path]:
    """Return the files that differ from the rendered charts or are not generated any more."""
    wanted = files()
    changed = [path for path, content in wanted.items() if not path.exists() or path.read_text() != content]
    return changed + [path for path in sorted(KUSTOMIZE.rglob("*.yaml")) if path not in wanted]


def write() -> list[Path]:
    """Update all generated files, delete obsolete ones, and return the changed paths."""
    wanted, outdated = files(), stale()
    for path in outdated:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        else:
            path.unlink()
    return outdated
