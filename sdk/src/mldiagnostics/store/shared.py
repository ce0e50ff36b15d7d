"""Directories that others write too, such as the operator's volume.

Below them no link is followed, not even in the path of a run that is opened as a directory of its own: a tenant could
lead a server to files that only the server may read.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.store.tree import listed, open_file, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_shared: list[Path] = []


@contextlib.contextmanager
def shared_directory(root: Path) -> Iterator[None]:
    """Follow no link below a directory while the block runs, in this process."""
    absolute = root.absolute()
    _shared.append(absolute)
    try:
        yield
    finally:
        _shared.remove(absolute)


def split_shared(path: Path) -> tuple[Path, str]:
    """Return the directory that is trusted, and the rest of the path below it.

    Without a shared directory above it, the whole path is trusted.
    """
    absolute = path.absolute()
    for root in _shared:
        if absolute.is_relative_to(root):
            inside = absolute.relative_to(root).as_posix()
            return root, "" if inside == "." else inside
    return absolute, ""


class Reader:
    """Opens, lists and examines files of a directory, as its file system requires.

    Args:
        directory: The directory of a run or a log.

    Example:
        reader = Reader("/volume/ml/run")
        with reader.scan("/volume/ml/run/records") as entries:
            paths = [entry.name for entry in entries]
        with open("/volume/ml/run/records/a.jsonl", "rb", opener=reader.opener) as file:
            lines = file.readlines()
    """

    def __init__(self, directory: str) -> None:
        self._root, inside = split_shared(Path(directory))
        self._is_shared = bool(inside)
        self.opener: Callable[[str, int], int] | None = self._open if self._is_shared else None
        """For the built-in `open`; None where links may be followed."""

    @contextlib.contextmanager
    def scan(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Yield the entries of a directory, to be examined inside the block.

        Raises `OSError`.
        """
        if not self._is_shared:
            with os.scandir(path) as entries:
                yield entries
            return
        with opened(self._root, self._key(path)) as directory, listed(directory) as entries:
            yield entries

    def status(self, path: str) -> os.stat_result:
        """Return the status of a file or directory. Raises `OSError`."""
        if not self._is_shared:
            return os.stat(path)  # noqa: PTH116 - strings are faster than paths
        folder, _, name = self._key(path).rpartition("/")
        with opened(self._root, folder) as directory:
            return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def _open(self, path: str, _flags: int) -> int:
        return open_file(self._root, self._key(path))

    def _key(self, path: str) -> str:
        return Path(path).absolute().relative_to(self._root).as_posix()
