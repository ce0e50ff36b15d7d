"""Build contexts: exactly the files that a Dockerfile copies, and their digest."""

import hashlib
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cluster.progress import ClusterError

# Written by Python and its build tools beside the sources; never part of an image.
LEFT_OUT = {"__pycache__", "build", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def copied(dockerfile: str) -> list[str]:
    """Return the sources of all COPY instructions that read from the context."""
    sources = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0].upper() == "COPY":
            arguments = [word for word in words[1:] if not word.startswith("--")]
            if not any(word.startswith("--from") for word in words):
                sources += arguments[:-1]
    return sources


def files(context: Path, dockerfile: str) -> list[Path]:
    """Return the copied files, relative to the context, sorted.

    Raises:
        ClusterError: a copied path does not exist.
    """
    names: set[Path] = set()
    for source in copied(dockerfile):
        path = context / source
        if not path.exists():
            raise ClusterError(f"the Dockerfile copies {source}, which does not exist in {context}")
        names.update(each.relative_to(context) for each in _below(path))
    return sorted(names)


def digest(context: Path, dockerfile: str, *arguments: str) -> str:
    """Return 12 hex digits that depend on the Dockerfile, the copied files and build arguments."""
    (only,) = digests(context, dockerfile, [arguments])
    return only


def digests(context: Path, dockerfile: str, choices: Iterable[Sequence[str]]) -> list[str]:
    """Return the digest for each choice of build arguments; this reads the copied files once."""
    content = b""
    for name in files(context, dockerfile):
        path = context / name
        executable = bool(path.stat().st_mode & 0o100)
        content += f"\0{name}\0{executable}\0".encode() + hashlib.sha256(path.read_bytes()).digest()
    heads = ("\0".join((dockerfile, *arguments)).encode() for arguments in choices)
    return [hashlib.sha256(head + content).hexdigest()[:12] for head in heads]


def stage(context: Path, dockerfile: str, destination: Path) -> None:
    """Copy the files and the Dockerfile into an empty folder."""
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
