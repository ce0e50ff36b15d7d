"""Imports below the names of other packages, answered with modules of `mldiagnostics` as its table of aliases says.

Both names give one module object, so that there is one run, one recording and one set of enumerations in the process.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

from mldiagnostics.compat.aliases import ALIASES
from mldiagnostics.compat.loader import AliasLoader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_FOLDERS = frozenset(
    f"{peer}.{path.rpartition('.')[0]}" for peer, aliases in ALIASES.items() for path in aliases if "." in path
)
"""Packages that are there only to lead to the aliases: `google_cloud_mldiagnostics.api`, …"""


def install() -> None:
    """Answer imports below the peers' names from now on, before anything of those names that may lie on the disk."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())


class AliasFinder(MetaPathFinder):
    """Finds aliases, and refuses every other name below a peer's, so that its own modules never mix with ours."""

    def find_spec(  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - importlib's protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of an alias. Raises ModuleNotFoundError for a name that has no counterpart."""
        peer, _, alias = fullname.partition(".")
        if not alias or peer not in ALIASES:
            return None
        if alias in ALIASES[peer]:
            return ModuleSpec(fullname, AliasLoader(ALIASES[peer][alias]))
        if fullname in _FOLDERS:
            return ModuleSpec(fullname, None, is_package=True)
        known = ", ".join(sorted(filter(None, ALIASES[peer])))
        raise ModuleNotFoundError(
            f"mldiagnostics-shim has no {alias!r} of {peer}, only {known}; tell us what needs it", name=fullname
        )
