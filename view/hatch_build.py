"""Build hook: a wheel contains the page, bundled from `web/` if that did not happen before."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BundledPage(BuildHookInterface[Any]):
    """Runs `web/bundle.py`; an editable installation leaves that to `make setup`."""

    @property
    def _page(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root, "web/bundle.py")))

    def dependencies(self) -> list[str]:
        """Return Node, where it is needed and the machine has none."""
        page = self._page
        return [] if page["is_current"]() or page["has_node"]() else [page["NODE"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Bundle the page."""
        page = self._page
        if version != "editable" and not page["is_current"]():
            page["bundle"]()
