"""Describe the software of a run: versions, flags and revision.

Only file names are read: no module is imported and no program is started.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.text.redaction import redact_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNKNOWN = "n/a"

MAX_ARGUMENTS = 1000
"""Characters of the arguments; the status of an MLRun has room for 1024."""

_CUT = " ..."

_FRAMEWORKS = {"JAX": ("jax",), "PYTORCH": ("torch",), "VLLM": ("vllm",), "TENSORFLOW": ("tensorflow",)}
_UNDETECTED = "UNKNOWN"
"""Framework of a program that has not imported one."""

_PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "torch", "torch_xla", "tensorflow", "transformers", "lightning", "vllm"),
    "numpy",
)
_LIBTPU = ("libtpu", "libtpu_nightly")
_INSTALLED = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.dist-info")
_REVISION = re.compile(r"[0-9a-f]{40,64}")


def is_current(known: Mapping[str, object], framework: str) -> bool:
    """Return whether the description has this `framework`, or a custom one."""
    named = known.get("framework")
    return bool(known) and (named == framework or named not in {*_FRAMEWORKS, _UNDETECTED})


def software(framework: str) -> dict[str, str]:
    """Return a description of the software of a run with this `framework`."""
    installed = installed_versions()
    description = {
        "framework": framework,
        "framework_version": _first(installed, *_FRAMEWORKS.get(framework, ())),
        "xla_flags": os.environ.get("XLA_FLAGS") or "default",
        "libtpu_version": _first(installed, *_LIBTPU),
        "python_version": sys.version.partition(" ")[0],
        "command": Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python",
    }
    if arguments := command_arguments([str(each) for each in sys.argv[1:]]):
        description["arguments"] = arguments
    description |= {f"{name}_version": installed[name] for name in _PACKAGES if name in installed}
    if revision := _revision():
        description["git_revision"] = revision
    return description


def command_arguments(arguments: Sequence[str]) -> str:
    """Return the arguments of a command as a shell reads them, without secrets.

    A long text is cut.
    """
    text = shlex.join(redact_arguments(arguments)).encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_ARGUMENTS else f"{text[: MAX_ARGUMENTS - len(_CUT)]}{_CUT}"


def installed_versions() -> dict[str, str]:
    """Return the versions of installed distributions by normalized name.

    Names are in lower case, with `_` for `-` and `.`.
    """
    versions: dict[str, str] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for match in filter(None, (_INSTALLED.fullmatch(path.name) for path in Path(folder).iterdir())):
                versions.setdefault(re.sub(r"[-.]+", "_", match["name"]).lower(), match["version"])
    return versions


def _first(installed: dict[str, str], *names: str) -> str:
    return next((installed[name] for name in names if name in installed), UNKNOWN)


def _revision() -> str | None:
    """Return the git commit of the program's source, None if unknown."""
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    source = Path(program).resolve().parent if program else Path.cwd()
    for folder in (source, *source.parents):
        git = folder / ".git"
        if git.exists():
            return _head(git) if git.is_dir() else _head(folder / _content(git).removeprefix("gitdir:").strip())
    return None


def _head(git: Path) -> str | None:
    """Return the commit of HEAD of a repository or work tree."""
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
