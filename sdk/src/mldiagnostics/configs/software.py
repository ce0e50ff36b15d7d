"""With which software a run is done: versions, flags, the source's revision; under Google's names where it has one.

Told from names of files alone: nothing is imported, no program is started, and a training process notices nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN = "n/a"

_FRAMEWORKS = {"JAX": ("jax",), "PYTORCH": ("torch",), "VLLM": ("vllm",), "TENSORFLOW": ("tensorflow",)}
_UNDETECTED = "UNKNOWN"
"""The framework of a run whose program has imported none."""

_PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "torch", "torch_xla", "tensorflow", "transformers", "lightning", "vllm"),
    "numpy",
)
_LIBTPU = ("libtpu", "libtpu_nightly")
_INSTALLED = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.dist-info")
_REVISION = re.compile(r"[0-9a-f]{40,64}")


def is_current(known: Mapping[str, object], framework: str) -> bool:
    """Tell whether a description of the software is there, for this `framework` or with a name of the program's own."""
    named = known.get("framework")
    return bool(known) and (named == framework or named not in {*_FRAMEWORKS, _UNDETECTED})


def software(framework: str) -> dict[str, str]:
    """Return what is known of the software; `framework` is that of the run."""
    installed = installed_versions()
    found = {
        "framework": framework,
        "framework_version": _first(installed, *_FRAMEWORKS.get(framework, ())),
        "xla_flags": os.environ.get("XLA_FLAGS") or "default",
        "libtpu_version": _first(installed, *_LIBTPU),
        "python_version": sys.version.partition(" ")[0],
        "command": Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python",  # arguments can hold secrets
    }
    found |= {f"{name}_version": installed[name] for name in _PACKAGES if name in installed}
    if revision := _revision():
        found["git_revision"] = revision
    return found


def installed_versions() -> dict[str, str]:
    """Return the version of every installed distribution, by its name in lower case with `_` for `-` and `.`."""
    found: dict[str, str] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for match in filter(None, (_INSTALLED.fullmatch(path.name) for path in Path(folder).iterdir())):
                found.setdefault(re.sub(r"[-.]+", "_", match["name"]).lower(), match["version"])
    return found


def _first(installed: dict[str, str], *names: str) -> str:
    return next((installed[name] for name in names if name in installed), UNKNOWN)


def _revision() -> str | None:
    """Return the commit of the program's source; None where there is no git, or its files say nothing."""
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    source = Path(program).resolve().parent if program else Path.cwd()
    for folder in (source, *source.parents):
        git = folder / ".git"
        if git.exists():
            return _head(git) if git.is_dir() else _head(folder / _content(git).removeprefix("gitdir:").strip())
    return None


def _head(git: Path) -> str | None:
    """Return what HEAD of a repository, or of one of its work trees, points to."""
    head = _content(git / "HEAD").strip()
    reference = head.removeprefix("ref:").strip()
    shared = git / (_content(git / "commondir").strip() or ".")
    packed = re.search(rf"^([0-9a-f]+) {re.escape(reference)}$", _content(shared / "packed-refs"), re.MULTILINE)
    for text in (head, _content(shared / reference).strip(), packed[1] if packed else ""):
        if _REVISION.fullmatch(text):
            return text
    return None


def _content(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return path.read_text()
    return ""
