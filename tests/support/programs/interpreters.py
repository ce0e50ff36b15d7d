"""The oldest and the newest Python of this machine that the SDK supports."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import ambient

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_MINOR = 10
TELL = "import platform, sys; print(*sys.version_info[:3], platform.python_implementation())"


@cache
def oldest_and_newest() -> dict[str, Path]:
    """Return interpreters by version, among those on the path, of pyenv, of uv, and this one."""
    found = {version: path for path in _candidates() if (version := _version(path)) >= (3, OLDEST_MINOR)}
    chosen = {min(found), max(found)}
    return {".".join(map(str, version)): found[version] for version in sorted(chosen)}


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable)
    for folder in os.get_exec_path():
        yield from Path(folder).glob("python3.[0-9]*[0-9]")
    pyenv = Path(ambient.environment().get("PYENV_ROOT") or ambient.home() / ".pyenv")
    yield from pyenv.glob("versions/3.*/bin/python3.[0-9]*[0-9]")
    yield from ambient.home().glob(".local/share/uv/python/cpython-3.*/bin/python3.[0-9]*[0-9]")


def _version(path: Path) -> tuple[int, ...]:
    """Return the version of a CPython, or empty for other files (pyenv has scripts of that name on the path)."""
    try:
        output = subprocess.run([path, "-I", "-c", TELL], capture_output=True, text=True, check=False, timeout=30)
    except OSError:
        return ()
    *version, implementation = output.stdout.split() or [""]
    return tuple(map(int, version)) if implementation == "CPython" else ()
