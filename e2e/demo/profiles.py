"""What XProf reads out of stored profiles: steps and their mean duration, host by host."""

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
    """The steps of one host that a profile holds, as XProf's overview page counts them; None without any."""

    host: str
    count: int
    mean_ms: float | None


def traces(log_directory: Path, session: str) -> list[Path]:
    """The traces of a session below an XProf log directory, in the order of their hosts' names."""
    return sorted((log_directory / "plugins/profile" / session).glob(f"*{SUFFIX}"))


def read(files: Sequence[Path]) -> list[Steps]:
    """Ask XProf about each file.

    In a process of its own, because XProf logs hundreds of lines to the standard error of its process.

    Raises:
        UnreadableError: XProf does not understand a file.
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
    """Duration of each step in the table of XProf's overview page, one of several tables in its answer."""
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data

    # XProf leaves caches beside a file that hold for the whole session: reading one host in place would poison them.
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
