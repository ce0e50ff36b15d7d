"""Whether a peer's own distribution is installed beside this one: both want the same folder, so one must go."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.install import install_hint

ORIGINALS = {
    "google_cloud_mldiagnostics": "google-cloud-mldiagnostics",
    "ml_goodput_measurement": "ml-goodput-measurement",
}
"""Import name -> the distribution that it comes from."""


def original(import_name: str) -> str | None:
    """Return the original distribution of an import name and its version, if it is installed."""
    distribution = ORIGINALS[import_name]
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return None


def advice(import_name: str) -> str:
    """Return the commands that leave this distribution alone with an import name."""
    install = install_hint("shim", options="--force-reinstall --no-deps")
    return f"pip uninstall {ORIGINALS[import_name]}, then {install}"


def warn_of_original(import_name: str) -> None:
    """Say once what to uninstall, if the original is there."""
    if found := original(import_name):
        warn_once(
            f"shim-beside-original:{import_name}",
            f"{found} is installed beside mldiagnostics-shim, and both own the folder {import_name}: "
            f"mldiagnostics serves this process, but the next installation may change that: {advice(import_name)}",
        )
