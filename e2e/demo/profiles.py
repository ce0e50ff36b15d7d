"""Steps and their mean duration per host, read from stored profiles by XProf."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".xplane.pb"
DEADLINE_S = 120


class UnreadableError(Exception):
    """XProf could not read a profile."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of one host, as on XProf's overview page; without steps there is no mean."""

    host: str
    count: int
    mean_ms: float | None


def traces(log_directory: Path, session: str) -> list[Path]:
    """Return the traces of a session below an XProf log directory, sorted by host."""
    return sorted((log_directory / "plugins/profile" / session).glob(f"*{SUFFIX}"))


def read(files: Sequence[Path]) -> list[Steps]:
    """Read each file with XProf, in a separate process: XProf writes hundreds of lines to standard error.

    Raises:
        UnreadableError: XProf cannot read a file.
    """
    command = [sys.executable, __file__, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode:
        raise UnreadableError(f"XProf cannot read {', '.join(map(str, files))}: {done.stderr.strip()[-2000:]}")
    times: list[list[float]] = json.loads(done.stdout)
    return [
        Steps(file.name.removesuffix(SUFFIX), len(own), sum(own) / len(own) if own else None)
        for file, own in zip(files, times, strict=True)
    ]


def _step_times_ms(file: str) -> list[float]:
    """Return the duration of each step from the table of XProf's overview page."""
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data

    # XProf caches results for the whole session beside a file: reading one host in place would corrupt the cache.
    with tempfile.TemporaryDirectory() as alone:
        copy = shutil.copy(file, alone)
        data, _ = xspace_to_tool_data([copy], "overview_page", {"use_saved_result": False})
    for table in json.loads(data):
        columns = [column["id"] for column in table.get("cols", [])]
        if "stepTimeMs" in columns:
            position = columns.index("stepTimeMs")
            return [row["c"][position]["v"] for row in table["rows"]]
    return []


if __name__ == "__main__":
    sys.stdout.write(json.dumps([_step_times_ms(file) for file in sys.argv[1:]]))
