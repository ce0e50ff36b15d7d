"""Summaries of sessions by XProf's converter, in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.capture.trace import summarize as summarize_trace
from mldiagnostics.capture.wire import WireError
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.install import install_hint
from mldiagnostics.layout import TRACE_SUFFIX
from mldiagnostics.store import open_store

from mldiagnostics_cli.profiles.summary import ProfileSummary, summarize

if TYPE_CHECKING:
    from mldiagnostics.runs import SessionRow

__all__ = ["converted"]

CONVERTER = "mldiagnostics_cli.profiles.converter_process"
LIMIT_S = 1800.0
"""A gigabyte of traces takes a few minutes."""

_PARALLEL_READS = 8


def converted(session: SessionRow) -> ProfileSummary:
    """Return the summary of a session.

    The traces are copied to a temporary directory, or linked there, so that XProf leaves no caches beside them.

    Raises:
        ConfigurationError: XProf is not installed, or cannot read the traces.
        StoreError: The traces cannot be read.
    """
    if find_spec("xprof") is None:
        raise ConfigurationError(f"profiles: need XProf to read traces; {install_hint('cli', extra='xprof')}")
    if not session.files:
        raise ConfigurationError(f"{session.url}: has no trace; choose another session")
    with tempfile.TemporaryDirectory(prefix="mldiag-profiles-") as folder:
        paths = [Path(folder, f"{file.host}{TRACE_SUFFIX}") for file in session.files]
        with ThreadPoolExecutor(_PARALLEL_READS) as workers:
            list(workers.map(_fetch, [file.url for file in session.files], paths))
        for file, path in zip(session.files, paths, strict=True):
            _check(file.url, path)
        done = subprocess.run(
            [sys.executable, "-m", CONVERTER, *map(str, paths)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            cwd=folder,
        )
    if done.returncode != 0:
        raise ConfigurationError(
            f"{session.url}: XProf cannot read the traces: {_cause(done.stderr)}; record the session again"
        )
    return summarize(json.loads(done.stdout))


def _fetch(url: str, path: Path) -> None:
    root, _, key = url.rpartition("/")
    if Path(url).is_file():
        path.symlink_to(Path(url).absolute())
        return
    with open_store(root).open(key) as file, path.open("wb") as copy:
        shutil.copyfileobj(file, copy)


def _check(url: str, path: Path) -> None:
    """Raise `ConfigurationError` for a file that is not a trace: XProf shows it as an empty one."""
    try:
        with path.open("rb") as file:
            summarize_trace(memoryview(mmap(file.fileno(), 0, access=ACCESS_READ)))  # unmapped with its last view
    except (WireError, ValueError) as error:  # mmap rejects an empty file
        raise ConfigurationError(f"{url}: is corrupt: {error}; delete it, and record the session again") from None


def _cause(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it ended without a message"
