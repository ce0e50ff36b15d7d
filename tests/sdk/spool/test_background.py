"""Uploads in the background leave no file of an ended process behind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mldiagnostics.spool.background import upload_run_record
from mldiagnostics.spool.queue import SpoolQueue
from support.programs.processes import eventually
from support.records import origin

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_other_files_of_a_directory_follow_its_run_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    runs = tmp_path / "runs"
    queue = SpoolQueue(str(runs), origin())
    queue.put("run/run.json", b'{"v": 1}')
    queue.put("run/records/one.jsonl", b"a line\n")
    queue.close()
    upload_run_record(str(runs), "run/run.json")
    assert (runs / "run/run.json").exists()
    # An upload that met the locked directory has passed by it.
    eventually(lambda: not any(names for _, _, names in os.walk(tmp_path / "spool")))
    assert (runs / "run/records/one.jsonl").read_bytes() == b"a line\n"
