"""The version of a release: `pyproject.toml` of the repository has it, all other files follow."""

import re
import tomllib
from pathlib import Path

from cluster.paths import REPOSITORY
from cluster.progress import ClusterError

SOURCE = "pyproject.toml"
FOLLOWERS = (
    *("*/pyproject.toml", "charts/*/Chart.yaml", "docs/install.md", "examples/gitops/*.yaml"),
    *(f"docs/how-to/{page}.md" for page in ("air-gapped", "images", "profiles-on-a-volume", "upgrade")),
)
_SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-rc\.[1-9]\d*)?")


def current(repository: Path = REPOSITORY) -> str:
    """Return the version of this checkout."""
    version: str = tomllib.loads((repository / SOURCE).read_text())["project"]["version"]
    return version


def followers(repository: Path = REPOSITORY) -> list[Path]:
    """Return the files that repeat the version."""
    return sorted(path for pattern in FOLLOWERS for path in repository.glob(pattern))


def change(version: str, repository: Path = REPOSITORY) -> list[Path]:
    """Write a new version into all files that have the current one, and return these.

    Raises:
        ClusterError: the version is not one that wheels, charts and images all accept.
    """
    if not _SEMANTIC.fullmatch(version):
        raise ClusterError(f"version {version!r}: not of the form 1.2.3 or 1.2.3-rc.1; use one of these")
    old = re.compile(rf"(?<![\w.]){re.escape(current(repository))}(?![\w]|\.\d|-rc)")
    changed = []
    for path in (repository / SOURCE, *followers(repository)):
        text = path.read_text()
        if (new := old.sub(version, text)) != text:
            path.write_text(new)
            changed.append(path)
    return changed
