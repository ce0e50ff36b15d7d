"""Upload the files in the spool, which wait for their storage.

python -m mldiagnostics.upload                    all files on this machine, each to its own storage
python -m mldiagnostics.upload --list             list the files
python -m mldiagnostics.upload SPOOL              the files in one directory, as named in a warning
python -m mldiagnostics.upload SPOOL STORAGE      the same, to another storage

Exit status: 0 all files are uploaded or none waits, 1 a file could not be uploaded, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.spool.directory import acquire_directory, read_description
from mldiagnostics.spool.places import directories, roots
from mldiagnostics.spool.uploading import upload_all
from mldiagnostics.standard_output import write_text
from mldiagnostics.store import open_store
from mldiagnostics.text.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.spool.directory import SpoolDirectory

_DEPTH = 2
"""Depth of the directories of processes below the root of the spool."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m mldiagnostics.upload",
        description="Upload records, profiles and run.json that wait on this machine for their storage.",
        epilog="Exit status: 0 all files are uploaded or none waits, 1 a file could not be, 2 wrong command line.",
    )
    parser.add_argument("--list", action="store_true", help="list the waiting files and upload nothing")
    parser.add_argument("spool", nargs="?", help="directory that a warning named; default: the spool of this user")
    parser.add_argument("storage", nargs="?", help="path or URL (s3://bucket/prefix); default: the storage of each")
    given = parser.parse_args(arguments)
    directories_given = [Path(given.spool)] if given.spool else roots()
    if given.spool and not directories_given[0].is_dir():
        hint = "; pass the directory of the spool before the storage" if "://" in given.spool else ""
        parser.error(f"{given.spool!r} is not a directory{hint}")
    spools = [path for each in directories_given for path in _processes(each)]
    if given.spool and not spools and any(directories_given[0].iterdir()):
        parser.error(f"{given.spool!r} is not a spool: there is no spool.json at most {_DEPTH} levels below")
    failed = False
    try:
        if not spools:
            write_text(f"nothing waits in {' or '.join(map(str, directories_given))}\n")
        for path in spools:
            line, works = _shown(path) if given.list else _uploaded(path, given.storage)
            failed = failed or not works
            write_text(f"{path}\n  {line}\n")
    except ConfigurationError as error:
        parser.error(str(error))
    return 1 if failed else 0


def _processes(directory: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """Yield the directories of processes at or below a directory of the spool."""
    if read_description(directory) is not None:
        yield directory
    elif depth:
        for inner in directories(directory):
            yield from _processes(inner, depth - 1)


def _shown(path: Path) -> tuple[str, bool]:
    """Return a description of one directory; the second value is as in `_uploaded`."""
    description = read_description(path)
    if description is None:
        return "was uploaded meanwhile", True
    sizes = [each.stat().st_size for each in (path / "files").rglob("*") if each.is_file()]
    origin = description.origin
    run = f"run {origin.run_id[:16] or '-'} {origin.name!r}, rank {origin.rank} on {origin.host}"
    return f"{_files(len(sizes), sum(sizes))} for {description.destination}, of {run}", True


def _uploaded(path: Path, storage: str | None) -> tuple[str, bool]:
    """Upload one directory; return the result, and whether it succeeded."""
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
        return f"{counted(len(directory.keys()), 'file')} not uploaded to {destination}: {error}", False
    line = f"{_files(result.files, result.bytes)} uploaded to {destination}"
    if result.conflicts:
        taken = ", ".join(result.conflicts)
        return f"{line}; not uploaded, since other content is there: {taken}; compare them and delete one", False
    return line, True


def _files(number: int, size: int) -> str:
    return f"{counted(number, 'file')} ({size / 2**20:.1f} MiB)"


if __name__ == "__main__":
    raise SystemExit(main())
