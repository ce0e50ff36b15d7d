"""A world of its own for each test: home, temporary folder, variables, locale, time zone, umask.

The user's variables stay under hidden names, for programs that fetch and build into caches (`cluster.ambient`).
`TESTS_TZ=…` and the like set a variable of all tests.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import ambient
from cluster.paths import cache

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = {
    *("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "TERM", "USER", "LOGNAME", "GOGC", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("CLUSTER", "BASE", "MLDIAG_CACHE", "MLDIAG_KUBERNETES", "MLDIAG_REQUIRE_ALL"),
}
KEPT_PREFIXES = ("PYTHON", "PYTEST_", "PY_", "COVERAGE_", "HYPOTHESIS_", "TESTS_")
CHOSEN = "TESTS_"
ALWAYS = {
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    # Programs of tests fork beside their threads, of which Python warns since 3.12.
    "PYTHONWARNINGS": "ignore:This process:DeprecationWarning",
}
UMASK = 0o022
MARK = f"{ambient.PREFIX}WORLD"
"""The folder of the process that hid the variables; its workers inherit it."""


def is_kept(name: str) -> bool:
    """Return whether a variable of the user reaches the tests."""
    return name in KEPT or name.startswith(KEPT_PREFIXES)


def variables(environment: Mapping[str, str], cached: Path) -> dict[str, str]:
    """Return the environment of all tests, without its folders; `cached` is the cache that they share."""
    kept = {name: value for name, value in environment.items() if is_kept(name)}
    chosen = {name.removeprefix(CHOSEN): value for name, value in kept.items() if name.startswith(CHOSEN)}
    return ambient.hidden(environment, kept) | ALWAYS | chosen | {"MLDIAG_CACHE": str(cached)}


def of_programs() -> dict[str, str]:
    """Return the variables that a program needs of its test's world: its folders, zone, locale and warnings."""
    names = ("PATH", "HOME", "TMPDIR", "TZ", "LC_ALL", "PYTHONPYCACHEPREFIX", "PYTHONWARNINGS")
    return {name: os.environ[name] for name in names if name in os.environ}


class World:
    """The folders of a process of tests, and their end."""

    def __init__(self) -> None:
        """Hide the user's variables from this process and those that it starts."""
        if MARK not in os.environ:
            own = variables(os.environ, cache()) | {"PYTEST_DEBUG_TEMPROOT": tempfile.gettempdir()}
            os.environ.clear()
            os.environ.update(own)
        self.folder = Path(tempfile.mkdtemp(prefix="mldiag-tests-", dir=os.environ.get(MARK)))
        self.folder.chmod(0o755)  # as /tmp: tests start programs as other users
        os.environ.setdefault(MARK, str(self.folder))
        self._numbers = count(1)
        os.environ.update(self.folders())
        tempfile.tempdir = None
        os.umask(UMASK)
        time.tzset()

    def folders(self) -> dict[str, str]:
        """Make a home and a temporary folder; return their variables."""
        folder = self.folder / str(next(self._numbers))
        made = {"HOME": folder / "home", "TMPDIR": folder / "tmp"}
        for each in made.values():
            each.mkdir(parents=True)
        return {name: str(each) for name, each in made.items()}

    def remove(self) -> None:
        """Remove what the tests left in their homes."""
        shutil.rmtree(self.folder, ignore_errors=True)
