"""The repeated captures of `mldiag capture`, in a file that outlives it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.text.file_errors import file_problem
from mldiagnostics_api.schedules.budget import DAY_S
from mldiagnostics_api.schedules.record import entry_of, wanted_of
from mldiagnostics_api.v1alpha1.schedule import MAX_CAPTURES, ScheduledCapture

from mldiagnostics_cli.state import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mldiagnostics_api.schedules.decision import WantedCapture


_LARGEST: Final = 4 * 2**20


def _whole(time: float) -> float:
    """Return the next whole second.

    Records have whole seconds, and slots are compared with theirs.
    """
    return float(ceil(time))


@dataclass(slots=True)
class RecurrenceRecord:
    """The captures of the last 24 hours of one command.

    A capture is written before it is made, so that a process that starts after a crash neither repeats a slot nor
    exceeds a budget.
    """

    path: Path
    since: float
    """Unix time of the first slot of a period."""
    made: list[WantedCapture]

    @classmethod
    @contextmanager
    def opened(
        cls, command: Sequence[object], now: float, *, directory: Path | None = None
    ) -> Iterator[RecurrenceRecord]:
        """Open the record of a command while the block runs.

        Args:
            command: Target and rules, which name it, as JSON has them.
            now: Unix time.
            directory: Of the records.

        Raises:
            ConfigurationError: Another process has it, or it cannot be written.
        """
        folder = directory or state_directory("captures")
        path = folder / f"{hashlib.sha256(json.dumps(list(command)).encode()).hexdigest()[:16]}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            problem = file_problem(error, "set XDG_STATE_HOME")
            raise ConfigurationError(f"{folder}: cannot keep the record of the captures: {problem}") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigurationError(
                    "another `mldiag capture` with this target and these times runs; end it, or change them"
                ) from None
            yield cls._read(path, now)
        finally:
            os.close(lock)

    @classmethod
    def _read(cls, path: Path, now: float) -> RecurrenceRecord:
        """Read the record; one that is not readable counts as empty."""
        try:
            with path.open("rb") as file:
                document = json.loads(file.read(_LARGEST))
            made = [wanted_of(ScheduledCapture.model_validate(each)) for each in document["captures"]]
            since = min(float(document["since"]), _whole(now))
        except (OSError, ValueError, KeyError, TypeError):
            return cls(path, _whole(now), [])
        record = cls(path, since, made)
        record.forget(now)
        if not record.made:
            record.since = _whole(now)  # a period that was not used for a day begins anew
        return record

    def forget(self, now: float) -> None:
        """Drop what does not count any more; captures of a clock that was ahead do count."""
        self.made = [each for each in self.made if each.time > now - DAY_S][-MAX_CAPTURES:]

    def add(self, wanted: WantedCapture) -> None:
        """Write a capture before it is made.

        Raises:
            ConfigurationError: The file cannot be written, so the capture must not be made.
        """
        self.forget(wanted.time)
        entries = [entry_of(each).model_dump(mode="json", by_alias=True) for each in [*self.made, wanted]]
        content = json.dumps({"v": 1, "since": self.since, "captures": entries})
        unfinished = self.path.with_suffix(".unfinished")
        try:
            unfinished.write_text(content)
            unfinished.replace(self.path)
        except OSError as error:
            problem = file_problem(error, "set XDG_STATE_HOME")
            raise ConfigurationError(f"{self.path}: cannot be written: {problem}") from error
        self.made.append(wanted)
