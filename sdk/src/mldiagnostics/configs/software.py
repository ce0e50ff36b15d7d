"""With which software a run is done: versions, flags, the source's revision; under Google's names where it has one."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "n/a"

_FRAMEWORKS = {"JAX": ("jax",), "PYTORCH": ("torch",), "VLLM": ("vllm",), "TENSORFLOW": ("tensorflow",)}
_PACKAGES = (
    "jax", "jaxlib", "flax", "optax", "torch", "torch_xla", "tensorflow", "transformers", "lightning", "vllm", "numpy",
)  # fmt: skip
_LIBTPU = ("libtpu", "libtpu-nightly")
_GIT_TIMEOUT_S = 2.0


def software(framework: str) -> dict[str, str]:
    """Return what can be told without importing any of it."""
    found = {
        "framework": framework,
        "framework_version": _first(_FRAMEWORKS.get(framework, ())),
        "xla_flags": os.environ.get("XLA_FLAGS") or "default",
        "libtpu_version": _first(_LIBTPU),
        "python_version": sys.version.partition(" ")[0],
        "command": _command(),
    }
    found |= {f"{name}_version": number for name in _PACKAGES if (number := _version(name)) is not None}
    if revision := _git_revision():
        found["git_revision"] = revision
    return found


def _first(names: tuple[str, ...]) -> str:
    return next((number for name in names if (number := _version(name)) is not None), UNKNOWN)


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _command() -> str:
    """Return the program alone: arguments can hold secrets."""
    return os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"  # noqa: PTH119 - only a name


def _git_revision() -> str | None:
    """Return the revision of the program's source, with `+` if files were changed; None without git."""
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    folder = os.path.dirname(os.path.abspath(program)) if program else "."  # noqa: PTH100, PTH120 - may be anything
    command = ["git", "--no-optional-locks", "-C", folder]
    command += ["describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
