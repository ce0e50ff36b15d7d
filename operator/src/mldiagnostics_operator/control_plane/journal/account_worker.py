"""Accounts of goodput by a process that may fail, and is started again."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson
from mldiagnostics_api.reports.reported_goodput import ReportedGoodput

from mldiagnostics_operator.control_plane.journal import account_program
from mldiagnostics_operator.control_plane.limits import ACCOUNT_DEADLINE_S

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_api.reports.run_key import RunKey

_LONGEST_LINE: Final = 2**20


class AccountFailed(Exception):
    """A journal could not be read, or its account took more than it may.

    Args:
        problem: Explanation for people.
        exceeds: Whether the process was lost, with the open journals of all runs.
    """

    def __init__(self, problem: str, *, exceeds: bool = False) -> None:
        super().__init__(problem)
        self.exceeds = exceeds


class AccountWorker:
    """Computes one account after the other in another process.

    Args:
        volume_root: Directory of the operator's volume.
        journal_bytes: Memory of the journals that are kept open.
    """

    def __init__(self, volume_root: Path, journal_bytes: int) -> None:
        self._arguments = (str(volume_root), str(journal_bytes))
        self._limit_mib = (journal_bytes + account_program.OWN_BYTES) // 2**20
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Its process; None while it has none."""
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        """Whether its process takes requests."""
        return self._input is not None

    async def account(
        self, key: RunKey, directory: str, until: float, *, ends_with_events: bool, finished: bool
    ) -> tuple[ReportedGoodput | None, float]:
        """Return the account of a run, and the seconds it took.

        A run without events has no account. The time is without the start of the process.

        Args:
            key: The run.
            directory: Directory of its journal.
            until: End of the account in Unix seconds.
            ends_with_events: No later events are kept, so the account ends with the last one.
            finished: Whether the journal is closed afterwards.

        Raises:
            AccountFailed: There is no account.
        """
        request = {"run": list(key), "place": directory, "until": until}
        request |= {"endsWithEvents": ends_with_events, "finished": finished}
        try:
            async with asyncio.timeout(ACCOUNT_DEADLINE_S):
                line = await self._ask(request)
        except TimeoutError as error:
            await self.aclose()
            raise AccountFailed(f"it takes longer than {ACCOUNT_DEADLINE_S:g} s", exceeds=True) from error
        except ValueError as error:  # the rest of the line would be the next answer
            await self.aclose()
            raise AccountFailed(f"it has more than {_LONGEST_LINE} bytes", exceeds=True) from error
        if not line.endswith(b"\n"):
            status = await self.aclose()
            is_full = status == account_program.OUT_OF_MEMORY
            problem = f"it takes more memory than {self._limit_mib} MiB" if is_full else f"its process ended, {status}"
            raise AccountFailed(problem, exceeds=True)
        try:
            answer = orjson.loads(line)
            if "error" in answer:
                raise AccountFailed(answer["error"])
            goodput, spent_s = answer["goodput"], float(answer["seconds"])
            return ReportedGoodput(**goodput) if goodput else None, spent_s
        except (LookupError, TypeError, ValueError) as error:
            await self.aclose()
            raise AccountFailed(f"its process sent an invalid answer: {error}", exceeds=True) from error

    def forget(self, key: RunKey) -> None:
        """Free the memory of a run."""
        if (stdin := self._input) is not None:
            stdin.write(orjson.dumps({"run": list(key)}) + b"\n")

    async def aclose(self) -> int:
        """End the process if it runs; return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.stdout is not None and not process.stdout.at_eof():
            with suppress(ProcessLookupError):
                process.kill()
        return await process.wait()

    @property
    def _input(self) -> asyncio.StreamWriter | None:
        """Input of the process; None if there is none, or one that has ended.

        uvloop raises `RuntimeError` for a write to one that has ended.
        """
        stdin = self._process.stdin if self._process else None
        return None if stdin is None or stdin.is_closing() else stdin

    async def _ask(self, request: dict[str, Any]) -> bytes:
        """Return the answer as a line; a part of one if the process ends meanwhile."""
        process = self._process
        if process is None or not self.is_running:
            await self.aclose()
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", account_program.__name__, *self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
            )
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            return b""
        with suppress(ConnectionError):
            stdin.write(orjson.dumps(request) + b"\n")
            await stdin.drain()
        return await stdout.readline()
