"""One command of `mldiag` in a process of its own, with its result as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


PARALLEL: Final = 2
"""Commands at a time; others wait."""
LIMIT_S: Final = 900.0
MAX_OUTPUT_BYTES: Final = 64 << 20
"""A longer result is an error: nobody reads so much, and it is held in memory."""
_MAX_MESSAGE: Final = 1000
_HAS_RESULT: Final = (0, 1, 2)
"""Exit codes after which there may be a result: also of a capture of which hosts failed."""


class CommandFailed(MLDiagnosticsError):
    """A command has no result; the message has its reason."""


class CommandRunner:
    """Runs commands with the rights of the user, without standard input.

    Args:
        place: Options that choose the place of the runs, which every command gets.
        variables: Variables that every command gets besides those of this process.
    """

    def __init__(self, place: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        self._place = place
        self._variables = variables or {}
        self._turns = asyncio.Semaphore(PARALLEL)

    async def document(self, *command: str, options: Sequence[str] = (), arguments: Sequence[str] = ()) -> Any:
        """Return the result of a command as JSON.

        Args:
            command: Words of the command.
            options: Its options; a value is joined to its option by `=`.
            arguments: Its arguments, which are never read as options.

        Raises:
            CommandFailed: The command failed, or its result is too long.
        """
        words = [*command, "--output=json", *self._place, *options, "--", *arguments]
        async with self._turns:
            code, output, errors = await _run(words, self._variables)
        if code in _HAS_RESULT:
            with suppress(ValueError):
                return json.loads(output)
        message = errors.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("mldiag: ")
        raise CommandFailed(printable(message[:_MAX_MESSAGE]) or f"{' '.join(command)}: ended with code {code}")


async def _run(words: Sequence[str], variables: Mapping[str, str]) -> tuple[int, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "mldiagnostics_cli", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **variables, "NO_COLOR": "1"},
    )
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    assert process.stderr is not None  # noqa: S101 - as above
    try:
        async with asyncio.timeout(LIMIT_S):
            output, errors = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            return await process.wait(), output, errors
    except TimeoutError:
        raise CommandFailed(f"{words[0]}: has not ended in {LIMIT_S:g} s; narrow the request") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _read(stream: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while part := await stream.read(1 << 16):
        content += part
        if len(content) > MAX_OUTPUT_BYTES:
            raise CommandFailed(f"the result is longer than {MAX_OUTPUT_BYTES >> 20} MiB; narrow the request")
    return bytes(content)
