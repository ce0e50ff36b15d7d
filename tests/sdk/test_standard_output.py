"""Every program of the SDK copes with a standard output that is full, closed, left by its reader, or plain ASCII."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mldiagnostics import machinelearning_run

DEADLINE_S = 120
PROGRAMS = [
    ("runs", "{runs}"),
    ("runs", "{runs}", "{id}"),
    ("goodput", "{runs}/{id}"),
    ("checkpoint_badput_calculator", "--log", "{runs}/{id}"),
    ("upload", "--list", "{spool}"),
    ("collect_profile", "--hosts", "127.0.0.1", "--port", "1", "--duration_in_ms", "1", "--log_dir", "{runs}/{id}"),
]
each_program = pytest.mark.parametrize("words", PROGRAMS, ids=lambda words: "-".join(words[:2]))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Directories of a run and of an empty spool."""
    runs, spool = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("spool")
    with machinelearning_run("größe", storage=str(runs), log_system_metrics=False) as run:
        run.step(0)
    return {"runs": str(runs), "id": run.run_id, "spool": str(spool)}


def command(words: tuple[str, ...], places: dict[str, str]) -> list[str]:
    module, *arguments = words
    return [sys.executable, "-m", f"mldiagnostics.{module}", *(each.format(**places) for each in arguments)]


@each_program
def test_a_full_disk_is_reported_in_one_line(words: tuple[str, ...], places: dict[str, str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command(words, places), stdout=full, stderr=subprocess.PIPE, check=False, timeout=DEADLINE_S
        )
    assert ended.returncode != 0
    last = ended.stderr.splitlines()[-1]
    assert b"standard output: cannot be written: no space left" in last.lower()
    assert b"Traceback" not in ended.stderr


@each_program
def test_a_closed_output_is_reported(words: tuple[str, ...], places: dict[str, str]) -> None:
    shell = ["sh", "-c", '"$@" >&-', "sh", *command(words, places)]
    ended = subprocess.run(shell, capture_output=True, check=False, timeout=DEADLINE_S)
    assert ended.returncode != 0
    assert b"standard output: is closed; redirect it to a file" in ended.stderr.splitlines()[-1]


@each_program
def test_a_reader_may_leave_at_once(words: tuple[str, ...], places: dict[str, str]) -> None:
    with subprocess.Popen(command(words, places), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@each_program
def test_a_plain_terminal_shows_similar_characters(words: tuple[str, ...], places: dict[str, str]) -> None:
    ended = subprocess.run(
        command(words, places),
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert ended.stdout.isascii()
    assert ended.stdout.strip()
    assert ended.stderr == b""
