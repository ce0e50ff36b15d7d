"""Load one module under a second import path, with one module object for both."""

from __future__ import annotations

from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType


class AliasLoader(InspectLoader):
    """Loads the module `target` under another name."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # type: ignore[explicit-override]  # noqa: ARG002
        """Return the target itself."""
        module = import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:  # type: ignore[explicit-override]
        """Restore the target's spec, which importlib has replaced; its code has run."""
        module.__spec__ = self._spec

    def get_code(self, fullname: str) -> CodeType | None:  # type: ignore[explicit-override]  # noqa: ARG002
        """Return the target's code, for `python -m`."""
        loader = self._target_loader()
        return loader.get_code(self._target) if loader else None

    def get_source(self, fullname: str) -> str | None:  # type: ignore[explicit-override]  # noqa: ARG002
        """Return the target's source, for tracebacks."""
        loader = self._target_loader()
        return loader.get_source(self._target) if loader else None

    def _target_loader(self) -> InspectLoader | None:
        spec = find_spec(self._target)
        return spec.loader if spec and isinstance(spec.loader, InspectLoader) else None
