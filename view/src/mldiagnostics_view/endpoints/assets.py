"""The page and its bundle, in memory."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from mldiagnostics.errors import ConfigurationError

from mldiagnostics_view.endpoints.bodies import Body

PAGE: Final = "index.html"
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def load_assets() -> dict[str, Body]:
    """Return the files of the page by name.

    Raises:
        ConfigurationError: The package was installed without its page.
    """
    folder = files("mldiagnostics_view") / "assets"
    entries = folder.iterdir() if folder.is_dir() else ()
    assets = {
        entry.name: Body(entry.read_bytes(), kind)
        for entry in entries
        if (kind := _TYPES.get("." + entry.name.rpartition(".")[2])) is not None
    }
    if PAGE not in assets:
        raise ConfigurationError(f"{folder}: has no {PAGE}; run `make setup` in the checkout")
    return assets
