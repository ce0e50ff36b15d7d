"""Find circles of files that import each other, also for types; `make layers` prints them.

Each file of a circle is read with all the others. The layers of import-linter see no circles inside a package, and no
imports for types.
"""

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from support.suite.imports import module

REPOSITORY = Path(__file__).parents[2]


def modules_of(root: Path) -> dict[str, Path]:
    """Return the modules of all members by their names."""
    return {module(str(path.relative_to(root))): path for path in root.glob("*/src/**/*.py")}


def imports_of(text: str, known: Collection[str]) -> set[str]:
    """Return the known modules that the text of a module imports, wherever it does."""
    return set(_imported(ast.parse(text), known)) & set(known)


def circle_of(imports: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one circle in order, the first again at the end; empty without a circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]  # graphlib gives it from the imported module to the one that imports it
    return []


def _imported(tree: ast.Module, known: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else node.module for name in names)


def main() -> int:
    """Print a circle, if there is one, and return the exit code."""
    modules = modules_of(REPOSITORY)
    circle = circle_of({name: imports_of(path.read_text("utf-8"), modules) - {name} for name, path in modules.items()})
    if circle:
        print(f"circle of imports: {' -> '.join(circle)}; let one of them take a Protocol, or move what both need")
    return 1 if circle else 0


if __name__ == "__main__":
    sys.exit(main())
