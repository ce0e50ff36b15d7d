"""The file of a trace: a stored file, a device, a pipe, or standard output."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError, StoreError, StoreUnreachable
from mldiagnostics.standard_output import opened, unwritable
from mldiagnostics.store import open_store
from mldiagnostics.text.file_errors import file_problem

from mldiagnostics_cli.trace.page import page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


STANDARD_OUTPUT = "-"
GZIP_SUFFIX = ".gz"
PAGE_SUFFIX = ".html"

GZIP_LEVEL = 1
"""The fastest: a trace of text is 8 times smaller with it, 10 times with the slowest."""


class UnwritableTrace(MLDiagnosticsError):
    """The file of a trace cannot be written."""


def write(out: str, pieces: Iterator[bytes]) -> None:
    """Write the pieces of a trace; an error of a piece is raised as it is.

    Args:
        out: File or URL, `-` for standard output.
        pieces: The trace, not compressed.

    Raises:
        UnwritableTrace: The file cannot be written.
        StoreUnreachable: The store of the file sends no response.
        ConfigurationError: Standard output cannot be written, or the name of the file is not valid.
    """
    if out == STANDARD_OUTPUT:
        _write_to_standard_output(pieces)
        return
    root, _, name = out.rpartition("/")
    source = _TracePieces(pieces)
    content = _content(name, iter(source))
    path = Path(out)
    if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
        _write_into(path, content)
        return
    try:
        open_store(root or ("/" if out.startswith("/") else ".")).put(name, content, replace=True)
    except StoreUnreachable:
        raise
    except StoreError as error:
        if error is source.failure:
            raise
        raise UnwritableTrace(str(error)) from error


class _TracePieces:
    """The pieces of a trace, and the error that ended them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.failure: Exception | None = None
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._pieces
        except Exception as error:
            self.failure = error
            raise


def _content(name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Return the content of a file in the format of its name."""
    if name.endswith(PAGE_SUFFIX):
        return page(name.removesuffix(PAGE_SUFFIX).removesuffix(".trace"), _compressed(pieces))
    return _compressed(pieces) if name.endswith(GZIP_SUFFIX) else pieces


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(GZIP_LEVEL, wbits=31)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _write_to_standard_output(pieces: Iterator[bytes]) -> None:
    output = opened().buffer
    for piece in pieces:
        rest = memoryview(piece)
        with _output_errors():
            while rest:  # without a buffer, the system may write a part of it
                rest = rest[output.write(rest) :]
    with _output_errors():
        output.flush()


@contextmanager
def _output_errors() -> Iterator[None]:
    """Turn errors of standard output into messages.

    A closed pipe ends the command quietly.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(error) from error


def _write_into(path: Path, content: Iterator[bytes]) -> None:
    """Write into a device, a pipe or the target of a link.

    A stored file would replace it.
    """
    with _file_errors(path):
        file = path.open("wb")
    try:
        for piece in content:
            with _file_errors(path):
                file.write(piece)
    finally:
        with _file_errors(path):
            file.close()


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = file_problem(error, "pass another file with --out")
        raise UnwritableTrace(f"{path}: cannot be written: {problem}") from error
