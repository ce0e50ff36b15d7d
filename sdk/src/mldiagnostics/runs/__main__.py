"""Show runs.

python -m mldiagnostics.runs STORAGE          a table of the runs below STORAGE
python -m mldiagnostics.runs STORAGE RUN      one run and its processes (the beginning of an id is enough)
"""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.locations import local_path
from mldiagnostics.runs import find_run, list_runs, ranks
from mldiagnostics.runs.listing import line_of
from mldiagnostics.standard_output import write_text
from mldiagnostics.store import open_store
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAM = "python -m mldiagnostics.runs"


def _main() -> None:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description="Show runs.")
    parser.add_argument("storage", help="root of the runs: a directory or URL such as s3://bucket/prefix")
    parser.add_argument("run", nargs="?", help="id of one run, or its beginning")
    arguments = parser.parse_args()
    try:
        lines = list(_one(arguments.storage, arguments.run) if arguments.run else _all(arguments.storage))
        if not lines:
            status, reason = _empty(arguments.storage)
            parser.exit(status, f"{parser.prog}: {printable(reason)}\n")
        write_text("".join(f"{printable(line)}\n" for line in lines))
    except MLDiagnosticsError as error:
        parser.exit(1, f"{parser.prog}: {printable(str(error))}\n")


def _all(storage: str) -> Iterator[str]:
    yield from map(line_of, list_runs(storage))


def _empty(storage: str) -> tuple[int, str]:
    """Return the exit status and a message for a root without runs."""
    store = open_store(storage)
    path = local_path(storage)
    if path is not None and not path.is_dir():
        return 1, f"{storage}: no such directory; pass the root of the runs, such as the storage= of a run"
    try:
        store.open(RUN_RECORD).close()
    except MLDiagnosticsError:
        return 0, f"{storage}: no runs yet; pass the root of the runs, such as the storage= of a run"
    parent, _, run = store.url().rstrip("/").rpartition("/")
    return 1, f"{storage}: this is the directory of one run; write {_PROGRAM} {shlex.quote(parent)} {shlex.quote(run)}"


def _one(storage: str, run: str) -> Iterator[str]:
    row = find_run(storage, run)
    yield line_of(row)
    yield f"  files: {row.directory}"
    if row.message:
        yield f"  {row.message}"
    for rank in ranks(row):
        phase = f"{rank.phase} ({rank.reason})" if rank.reason else rank.phase
        step = "-" if rank.step is None else rank.step
        yield f"  rank {rank.rank} on {rank.host}: {phase}  step {step}"


if __name__ == "__main__":
    _main()
