"""The files of the repository that each Python file uses: its imports, and the names in its text.

Tests run programs from text and start modules by name, so names in strings count as imports.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

# Folders from which modules are imported.
ROOTS = re.compile(r"^(?:\w+/src|tests|e2e|docs/generate)/")
FROM = re.compile(r"\bfrom\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)")
DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+)+")
IMPORT = re.compile(r"\bimport\s+(\w+)(?![\w.])")
MODULE_OPTION = re.compile(r"-m\W+(\w+)(?![\w.])")
# Imports of a type checker run nothing.
FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)


def module(path: str) -> str:
    """Return the dotted name of a Python file: `sdk/src/mldiagnostics/run/__init__.py` is `mldiagnostics.run`."""
    inner = PurePosixPath(ROOTS.sub("", path)).with_suffix("")
    parts = inner.parts[:-1] if inner.name == "__init__" else inner.parts
    return ".".join(parts)


def names(text: str) -> frozenset[str]:
    """Return the dotted names in a text that may be modules."""
    text = FOR_TYPES.sub("", text).replace("\\n", "\n")
    members = [f"{base}.{name}" for base, listed in FROM.findall(text) for name in re.findall(r"\w+", listed)]
    rest = FROM.sub("", text)
    return frozenset((*members, *IMPORT.findall(rest), *MODULE_OPTION.findall(rest), *DOTTED.findall(rest)))


def graph(texts: Mapping[str, str], changed: Iterable[str] = ()) -> dict[str, frozenset[str]]:
    """Return the files that each file uses.

    A module imports the packages above it as well. They count only if they changed themselves: a package that
    collects names would else connect all its modules.

    Args:
        texts: The text of each Python file of the repository, by its path.
        changed: The paths that changed.
    """
    files = {module(path): path for path in texts}
    packages = {module(path): path for path in changed if path.endswith("/__init__.py")}
    return {path: _used(names(text), files, packages) | _conftests(path, texts) for path, text in texts.items()}


def _used(mentioned: frozenset[str], files: Mapping[str, str], packages: Mapping[str, str]) -> frozenset[str]:
    used = {files[prefix] for name in mentioned if (prefix := _longest(name, files))}
    above = {path for name in mentioned for package, path in packages.items() if name.startswith(f"{package}.")}
    return frozenset(used | above)


def _longest(name: str, files: Mapping[str, str]) -> str | None:
    """Return the module that a dotted name is, or is a member of."""
    while name and name not in files:
        name = name.rpartition(".")[0]
    return name or None


def _conftests(path: str, texts: Mapping[str, str]) -> frozenset[str]:
    """Return the files of fixtures that pytest loads for a test."""
    if not PurePosixPath(path).name.startswith("test_"):
        return frozenset()
    return frozenset(str(above / "conftest.py") for above in PurePosixPath(path).parents) & texts.keys()
