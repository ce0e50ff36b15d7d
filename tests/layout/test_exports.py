"""`__all__` lists public names and re-exports; elsewhere it would repeat the names of its file."""

from __future__ import annotations

import ast
from pathlib import Path

from mldiagnostics.compat.aliases import ALIASES, OLD_PATHS

ROOT = Path(__file__).parents[2]
PUBLIC = {*OLD_PATHS.values(), *(module for modules in ALIASES.values() for module in modules.values())}


def test_only_public_modules_and_packages_that_re_export_list_names() -> None:
    files = [path for folder in ("*/src", "e2e", "tests", "bench") for path in ROOT.glob(f"{folder}/**/*.py")]
    listing = [path for path in files if "\n__all__" in path.read_text()]
    assert len(listing) > 20
    assert [path for path in listing if not _is_public(path) and not _re_exports(path)] == []


def _is_public(path: Path) -> bool:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts[2:])
    return module in PUBLIC or module.startswith("mldiagnostics.integrations.")


def _re_exports(path: Path) -> bool:
    """Whether a package lists names that it does not define itself."""
    names: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names[name] = node
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                names[name] = value or node
    return path.name == "__init__.py" and not names.keys() >= set(ast.literal_eval(names["__all__"]))
