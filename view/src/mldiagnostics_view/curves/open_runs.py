"""The runs whose curves are open, read in threads; at most a few."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics_view.curves.reader import CurveReader
from mldiagnostics_view.limits import CLOSE_S, FIRST_ANSWER_S, MAX_OPEN_RUNS, READ_SLICE_S, REFRESH_S

if TYPE_CHECKING:
    from mldiagnostics_view.curves.progress import ReadProgress


@dataclass(slots=True)
class _OpenRun:
    reader: CurveReader
    work: asyncio.Task[None] | None = None
    sampled: asyncio.Future[None] = field(default_factory=asyncio.Future)
    """Done once the work has sampled a large run."""
    read_at: float = field(default=float("-inf"))
    """When all lines had been read, in seconds of the loop's clock."""


class OpenRuns:
    """Readers of runs; the one not used for the longest time is closed."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, _OpenRun] = OrderedDict()

    async def get(self, directory: str, *, wait_s: float = FIRST_ANSWER_S) -> tuple[CurveReader, ReadProgress, bool]:
        """Return the reader of a run, how far it is, and whether that is all.

        Args:
            directory: The directory of the run: a path or URL.
            wait_s: Wait so long for the lines that are new, or for a sample if they are many; reading goes on
                afterwards.

        Raises:
            StoreError: The files cannot be read.
            OSError: The temporary directory is full.
        """
        run = self._runs.get(directory)
        if run is None:
            run = _OpenRun(await asyncio.to_thread(CurveReader, directory))
            if self._runs.setdefault(directory, run) is not run:  # another request was faster
                run.reader.close()
                run = self._runs[directory]
        self._runs.move_to_end(directory)
        self._close_oldest()
        loop = asyncio.get_running_loop()
        if run.work is None and loop.time() - run.read_at >= REFRESH_S:
            run.work, run.sampled = asyncio.create_task(self._read(run)), loop.create_future()
        if run.work is not None:
            await asyncio.wait([run.work, run.sampled], timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        if run.work is not None and run.work.done():
            work, run.work = run.work, None
            work.result()
        return run.reader, await asyncio.to_thread(run.reader.progress), run.work is None

    async def aclose(self) -> None:
        """Stop reading and close all readers.

        Those that wait for a store longer than `CLOSE_S` stay open.
        """
        for run in self._runs.values():
            if run.work is not None:
                run.work.cancel()
        closing = [asyncio.create_task(asyncio.to_thread(run.reader.close)) for run in self._runs.values()]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_S)
        self._runs.clear()

    async def _read(self, run: _OpenRun) -> None:
        if await asyncio.to_thread(run.reader.sample):
            run.sampled.set_result(None)
        while not await asyncio.to_thread(run.reader.read, READ_SLICE_S):
            pass
        run.read_at = asyncio.get_running_loop().time()

    def _close_oldest(self) -> None:
        """Close readers beyond the limit that are not at work."""
        idle = [directory for directory, run in self._runs.items() if run.work is None]
        for directory in idle[: max(0, len(self._runs) - MAX_OPEN_RUNS)]:
            self._runs.pop(directory).reader.close()
