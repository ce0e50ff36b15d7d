"""Errors of the file of a trace, apart from those of its sources."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import StoreNotFound
from mldiagnostics_cli.exit_codes import CLOSED_PIPE
from mldiagnostics_cli.trace.writing import UnwritableTrace, write
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE = "2026-11-21T10:00:00Z started\n"
UNREADABLE = "/proc/self/mem"
"""A file whose reading fails: it has nothing at its start."""


def torn(error: Exception) -> Iterator[bytes]:
    yield b"piece"
    raise error


@pytest.mark.parametrize("name", ["file.json", "file.json.gz", "page.html", "link", "-"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), StoreNotFound("s3://b: no such bucket")])
def test_an_error_of_a_piece_is_raised_as_it_is(
    name: str, error: Exception, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    with pytest.raises(type(error)) as raised:
        write(name if name == "-" else str(tmp_path / name), torn(error))
    assert raised.value is error
    capfdbinary.readouterr()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("absent/target")
    for name in ("folder", "link"):
        with pytest.raises(UnwritableTrace, match=f"{tmp_path}/{name}"):
            write(str(tmp_path / name), iter([b"piece"]))


@pytest.fixture
def mldiag(tmp_path: Path) -> CommandLine:
    (tmp_path / "a.log").write_text(LINE)
    return CommandLine(tmp_path)


@pytest.mark.parametrize("out", ["link", "new.json", "-"])
def test_a_log_that_cannot_be_read_is_named_not_the_file(out: str, mldiag: CommandLine) -> None:
    (mldiag.folder / "link").symlink_to("/dev/null")
    message = mldiag.failure("trace", UNREADABLE, "--out", out)
    assert (
        message == f"{UNREADABLE}: Input/output error; check the disk, the network file system or choose another path"
    )


def write_to(output: int, mldiag: CommandLine, unbuffered: str) -> tuple[int, str]:
    """Return code and messages of a trace that goes to standard output."""
    done = subprocess.run(
        [mldiag.script, "trace", "a.log", "--out", "-"],
        cwd=mldiag.folder,
        env=mldiag.environment({"PYTHONUNBUFFERED": unbuffered}),
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_at_standard_output_is_named(unbuffered: str, mldiag: CommandLine) -> None:
    with Path("/dev/full").open("wb") as full:
        code, message = write_to(full.fileno(), mldiag, unbuffered)
    assert code == 1
    assert message.startswith("mldiag: standard output: cannot be written: No space left on device; free some space or")
    assert message.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_at_standard_output_ends_quietly(unbuffered: str, mldiag: CommandLine) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb"):
        assert write_to(writer, mldiag, unbuffered) == (CLOSED_PIPE, "")
