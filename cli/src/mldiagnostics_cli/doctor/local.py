"""Checks of this machine: the installation, the storage, and XProf."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.locations import local_path
from mldiagnostics.store import open_store
from mldiagnostics.store.trial import try_store

from mldiagnostics_cli.doctor.finding import broken, fine, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_cli.doctor.finding import DoctorFinding


MEMBERS = ("mldiagnostics", "mldiagnostics-api", "mldiagnostics-kube")
"""Distributions of the same version as the command line."""


def check_installation() -> Iterator[DoctorFinding]:
    """Check the versions of the command line's parts, and whether XProf is installed."""
    own = version("mldiagnostics-cli")
    others = {name: version(name) for name in MEMBERS}
    python = sys.version.split()[0]
    if mixed := [f"{name} {each}" for name, each in others.items() if each != own]:
        remedy = f"pip install --upgrade 'mldiagnostics-cli=={own}'"
        yield broken("client", f"mldiagnostics-cli {own} is installed beside {', '.join(mixed)}", remedy)
    else:
        yield fine("client", f"mldiagnostics-cli {own}, Python {python}")
    yield _xprof()


def check_storage(storage: str, *, is_given: bool) -> DoctorFinding:
    """Write, list, read and delete a small file in the root of the runs.

    Args:
        storage: Root of the runs: a directory or URL.
        is_given: Whether the user chose it; the default need not exist.
    """
    path = local_path(storage)
    if path is not None and not path.exists():
        if is_given:
            return broken("storage", f"{storage}: no such directory", "make it, or choose another one with --storage")
        return unknown("storage", f"{storage}: no runs here yet", "choose the root of your runs with --storage")
    try:
        try_store(open_store(storage), storage)
    except MLDiagnosticsError as error:
        problem, _, remedy = str(error).rpartition("; ")
        return broken("storage", problem or remedy, remedy if problem else "check --storage and your rights there")
    return fine("storage", f"{storage}: a file was written, listed, read and deleted")


def _xprof() -> DoctorFinding:
    scripts = Path(sysconfig.get_path("scripts"))
    beside = scripts / "xprof"
    program = str(beside) if beside.is_file() else shutil.which("xprof")
    try:
        installed = version("xprof")
    except PackageNotFoundError:
        installed = ""
    if program is None:
        return unknown("xprof", "not installed on this machine, so it opens no profiles", "pip install xprof")
    return fine("xprof", f"xprof {installed}: {program}" if installed else program)
