"""Upload what waits in the spool, since its storage could not be written when it was recorded.

python -m mldiagnostics.upload                    all that waits on this machine, each to the storage it was meant for
python -m mldiagnostics.upload --list             show what waits
python -m mldiagnostics.upload SPOOL              only what waits in one directory, as a warning names it
python -m mldiagnostics.upload SPOOL STORAGE      to another storage

Exit status: 0 all is uploaded or nothing waits, 1 something could not be uploaded, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.spool.directory import acquire_directory, read_description
from mldiagnostics.spool.places import directories, roots
from mldiagnostics.spool.uploading import upload_all
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.spool.directory import SpoolDirectory

_DEPTH = 2
"""How far below the root of the spool the directories of processes are."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m mldiagnostics.upload",
        description="Upload records, profiles and run.json that wait on this machine for their storage.",
        epilog="Exit status: 0 all is uploaded or nothing waits, 1 something could not be, 2 wrong command line.",
    )
    parser.add_argument("--list", action="store_true", help="show what waits and upload nothing")
    parser.add_argument("spool", nargs="?", help="directory that a warning named; default: the spool of this user")
    parser.add_argument("storage", nargs="?", help="path or gs://bucket/prefix; default: where each was meant to go")
    given = parser.parse_args(arguments)
    places = [Path(given.spool)] if given.spool else roots()
    if given.spool and not places[0].is_dir():
        hint = "; give the directory of the spool before the storage" if "://" in given.spool else ""
        parser.error(f"{given.spool!r} is not a directory{hint}")
    found = [path for place in places for path in _processes(place)]
    if given.spool and not found and any(places[0].iterdir()):
        parser.error(f"{given.spool!r} is not a spool: there is no spool.json at most {_DEPTH} levels below")
    if not found:
        print(f"nothing waits in {' or '.join(map(str, places))}")  # noqa: T201 - that is its purpose
    failed = False
    for path in found:
        line, works = _shown(path) if given.list else _uploaded(path, given.storage)
        failed = failed or not works
        print(f"{path}\n  {line}")  # noqa: T201 - that is its purpose
    return 1 if failed else 0


def _processes(place: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """Yield the directories of processes in a spool, in one of its folders, or the given one."""
    if read_description(place) is not None:
        yield place
    elif depth:
        for inner in directories(place):
            yield from _processes(inner, depth - 1)


def _shown(path: Path) -> tuple[str, bool]:
    """Describe one directory; the second value is as in `_uploaded`."""
    description = read_description(path)
    if description is None:
        return "was uploaded meanwhile", True
    sizes = [each.stat().st_size for each in (path / "files").rglob("*") if each.is_file()]
    origin = description.origin
    run = f"run {origin.run_id[:16] or '-'} {origin.name!r}, rank {origin.rank} on {origin.host}"
    return f"{_counted(len(sizes), sum(sizes))} for {description.destination}, of {run}", True


def _uploaded(path: Path, storage: str | None) -> tuple[str, bool]:
    """Upload one directory; return what became of it, and whether nothing went wrong."""
    description = read_description(path)
    if description is None:
        return "was uploaded meanwhile", True
    if description.form == "records":
        return f"waits for {description.destination}: the next process with that sink on this machine sends it", True
    directory = acquire_directory(path, of_others=True)
    if directory is None:
        return "in use by a running process, which uploads it itself", True
    try:
        return _result(directory, storage or description.destination)
    finally:
        directory.remove_or_release()


def _result(directory: SpoolDirectory, destination: str) -> tuple[str, bool]:
    try:
        result = upload_all(directory, open_store(destination))
    except MLDiagnosticsError as error:
        return f"{len(directory.keys())} files not uploaded to {destination}: {error}", False
    line = f"{_counted(result.files, result.bytes)} uploaded to {destination}"
    if result.conflicts:
        taken = ", ".join(result.conflicts)
        return f"{line}; not uploaded, since other content is there: {taken}; compare them and delete one", False
    return line, True


def _counted(files: int, size: int) -> str:
    return f"{files} {'file' if files == 1 else 'files'} ({size / 2**20:.1f} MiB)"


if __name__ == "__main__":
    raise SystemExit(main())
