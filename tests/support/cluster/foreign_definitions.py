"""CustomResourceDefinitions of projects whose objects our examples contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cluster.modules import module_folder

if TYPE_CHECKING:
    from pathlib import Path

_PROJECTS: Final = {
    "argo-cd": ("github.com/argoproj/argo-cd/v3", "gitops", "manifests/crds/*-crd.yaml"),
    "flux": ("github.com/fluxcd/source-controller", "gitops", "config/crd/bases/*.yaml"),
    "openshift": ("github.com/openshift/api", "kuberay", "route/v1/zz_generated.crd-manifests/*.yaml"),
}
"""Module, the folder in `e2e/tools` that pins it, and its files."""


def definitions_of(project: str) -> list[Path]:
    """Return the files with the definitions of a project. Raises `ClusterError`."""
    module, pinned, pattern = _PROJECTS[project]
    files = sorted(module_folder(module, pinned).glob(pattern))
    assert files, f"{module}: has no {pattern}"
    return files
