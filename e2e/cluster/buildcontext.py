"""What an image is made of: exactly the files that its Dockerfile copies, and a digest of them."""

import hashlib
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from cluster.progress import ClusterError

# Made by Python and its build tools beside the sources; they never belong in an image.
LEFT_OUT = {"__pycache__", "build", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def copied(dockerfile: str) -> list[str]:
    """Sources of all COPY instructions that read from the context, in order."""
    sources = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0].upper() == "COPY":
            arguments = [word for word in words[1:] if not word.startswith("--")]
            if not any(word.startswith("--from") for word in words):
                sources += arguments[:-1]
    return sources


def files(context: Path, dockerfile: str) -> list[Path]:
    """The copied files, relative to the context, sorted.

    Raises:
        ClusterError: the Dockerfile copies something that is not there.
    """
    found: set[Path] = set()
    for source in copied(dockerfile):
        path = context / source
        if not path.exists():
            raise ClusterError(f"the Dockerfile copies {source}, which is not in {context}")
        found.update(each.relative_to(context) for each in _below(path))
    return sorted(found)


def digest(context: Path, dockerfile: str, *arguments: str) -> str:
    """Twelve hex digits that change with the Dockerfile, a copied file, its mode, or a build argument."""
    whole = hashlib.sha256("\0".join((dockerfile, *arguments)).encode())
    for name in files(context, dockerfile):
        path = context / name
        executable = bool(path.stat().st_mode & 0o100)
        whole.update(f"\0{name}\0{executable}\0".encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]


def stage(context: Path, dockerfile: str, destination: Path) -> None:
    """Copy the files into an empty folder, so that a builder sees nothing else; writes `Dockerfile` beside them."""
    for name in files(context, dockerfile):
        target = destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(context / name, target)
    (destination / "Dockerfile").write_text(dockerfile)


def _below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for each in sorted(path.iterdir()):
        if each.name not in LEFT_OUT and not each.name.endswith((".egg-info", ".pyc")):
            yield from _below(each)
