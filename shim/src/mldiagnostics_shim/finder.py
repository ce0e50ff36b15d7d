"""Imports below the peers' names, resolved to modules of `mldiagnostics`.

Both names give the same module object, so that a process has one run and one set of enumerations.
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
"""Packages that only contain aliases: `google_cloud_mldiagnostics.api`, …"""


def install() -> None:
    """Resolve imports below the peers' names, before packages on the disk."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())


class AliasFinder(MetaPathFinder):
    """A finder of aliases.

    Other names below a peer's are rejected, so that the peer's modules never mix with ours.
    """

    def find_spec(  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - importlib's protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of an alias; raise ModuleNotFoundError for a name without one."""
        peer, _, alias = fullname.partition(".")
        if not alias or peer not in ALIASES:
            return None
        if alias in ALIASES[peer]:
            return ModuleSpec(fullname, AliasLoader(ALIASES[peer][alias]))
        if fullname in _FOLDERS:
            return ModuleSpec(fullname, None, is_package=True)
        known = ", ".join(sorted(filter(None, ALIASES[peer])))
        raise ModuleNotFoundError(
            f"{fullname}: mldiagnostics-shim has no such module; it has {known}. Please open an issue if you need it",
            name=fullname,
        )
