"""The program that the doctor runs in a container.

It prints the SDK's version, its sinks and its storage as JSON.

It imports only the SDK, which is all that the container is expected to have. With the argument `as-program` it runs
with the Python of the container's program, which may be one of a virtual environment.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


AS_PROGRAM = "as-program"


def probe() -> dict[str, object]:
    """Return the state of the SDK of this process.

    Keys are `python`, `sdk`, `problems` of sinks, `storage` and its `storageProblem`.
    """
    try:
        import mldiagnostics  # noqa: PLC0415 - its absence is a result
        from mldiagnostics.sink_urls import split_sinks  # noqa: PLC0415 - as above
        from mldiagnostics.sinks import sink_maker  # noqa: PLC0415 - as above
        from mldiagnostics.store import open_store  # noqa: PLC0415 - as above
    except ImportError as error:
        return {"python": sys.executable, "sdk": "", "problems": [str(error)]}
    storage = os.environ.get("MLDIAG_STORAGE", "")

    def write() -> None:
        store, key = open_store(storage), f".mldiag-doctor-{uuid.uuid4().hex}"
        store.put(key, b"written by mldiag doctor\n")
        store.delete(key)

    sinks = split_sinks(os.environ.get("MLDIAG_SINKS", ""))
    found = [_problem_of(lambda: sink_maker(url)) for url in sinks]  # noqa: B023 - called at once
    return {
        "python": sys.executable,
        "sdk": mldiagnostics.__version__,
        "problems": [problem for problem in found if problem],
        "storage": storage,
        "storageProblem": _problem_of(write) if storage else "",
    }


def python_of_program(processes: str = "/proc") -> str | None:
    """Return the Python that the oldest other process runs; None without one."""
    for number in sorted(int(name) for name in os.listdir(processes) if name.isdigit()):  # noqa: PTH208 - few imports
        command = _command(f"{processes}/{number}")[0]
        if number != os.getpid() and command.rpartition("/")[2].startswith("python"):
            python = shutil.which(command)
            if python:
                return python
    return None


def _command(process: str) -> list[str]:
    """Return the command line of a process; an empty text if it has ended."""
    try:
        with open(f"{process}/cmdline", "rb") as file:  # noqa: PTH123 - few imports
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return [""]


def _problem_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except Exception as error:  # noqa: BLE001 - each failure is a result
        return f"{error}" or type(error).__name__
    return ""


if __name__ == "__main__":
    if sys.argv[1:] == [AS_PROGRAM] and (python := python_of_program()):
        os.execv(python, [python, *_command("/proc/self")[1:3]])  # noqa: S606 - `-c` and this source
    print(json.dumps(probe()))  # noqa: T201 - that is its purpose
