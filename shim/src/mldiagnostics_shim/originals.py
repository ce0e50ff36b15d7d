"""Detection of a peer's own distribution, which installs into the same folder."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.install import install_hint

ORIGINALS = {
    "google_cloud_mldiagnostics": "google-cloud-mldiagnostics",
    "ml_goodput_measurement": "ml-goodput-measurement",
}
"""Distribution of each import name."""


def original(import_name: str) -> str | None:
    """Return the original distribution and its version, or None if not installed."""
    distribution = ORIGINALS[import_name]
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return None


def advice(import_name: str) -> str:
    """Return the commands that remove the original distribution and repair this one."""
    install = install_hint("shim", options="--force-reinstall --no-deps")
    return f"pip uninstall {ORIGINALS[import_name]}, then {install}"


def warn_of_original(import_name: str) -> None:
    """Warn once if the original distribution is installed."""
    if installed := original(import_name):
        warn_once(
            f"shim-beside-original:{import_name}",
            f"{installed}: also installed, and both it and mldiagnostics-shim own the folder {import_name}; "
            f"mldiagnostics serves this process, but the next installation may change that: {advice(import_name)}",
        )
