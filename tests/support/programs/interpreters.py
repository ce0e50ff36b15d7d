"""The oldest and the newest Python of this machine that the SDK supports."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from cluster import ambient

if TYPE_CHECKING:
    from collections.abc import Iterator

Age: TypeAlias = Literal["oldest", "newest"]

OLDEST_MINOR = 10
TELL = "import platform, sys; print(*sys.version_info[:3], platform.python_implementation())"


def python_of(age: Age) -> Path:
    """Return the oldest or newest interpreter among those on the path, of pyenv, of uv, and this one."""
    versions = _versions()
    return versions[min(versions) if age == "oldest" else max(versions)]


@cache
def _versions() -> dict[tuple[int, ...], Path]:
    return {version: path for path in _candidates() if (version := _version(path)) >= (3, OLDEST_MINOR)}


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
