"""Nothing that a name holds can act on a terminal, in any of the programs that print names."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.store import open_store
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NASTY = "evil\x1b[2J\x1b]0;owned\x07\r\n\u202ename"
SHOWN = r"evil\x1b[2J\x1b]0;owned\x07\r\n\u202ename"


@given(st.text(st.characters()))
def test_escaped_text_can_be_printed_and_read(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()
    assert shown == text or not text.isprintable()


def test_control_characters_are_escaped() -> None:
    assert printable(NASTY) == SHOWN
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_a_warning_is_one_harmless_line(caplog: pytest.LogCaptureFixture) -> None:
    warn_once("test-nasty", f"job {NASTY}")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [f"job {SHOWN}"]


def test_a_warning_shows_no_credentials(caplog: pytest.LogCaptureFixture) -> None:
    warn_once("test-credentials", "sink 'otlp://me:hush@collector' is left out")
    assert "hush" not in caplog.text
    assert "otlp://me:<secret>@collector" in caplog.text


def output(*command: str, cwd: Path) -> str:
    environment = {**os.environ, "MLDIAG_STORAGE": str(cwd / "runs")}
    ended = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.stdout + ended.stderr


def test_no_program_prints_control_characters(tmp_path: Path) -> None:
    program = f"""
from mldiagnostics import machinelearning_run
from mldiagnostics.goodput_utils import *
with machinelearning_run({NASTY!r}, storage="runs") as run:
    run.step(0)
    with run.recorder.event({NASTY!r}):
        pass
    run.step(1)
"""
    started = output("-c", program, cwd=tmp_path)
    assert SHOWN in started
    run = next((tmp_path / "runs").glob("*/run.json")).parent
    outputs = [
        started,
        output("-m", "mldiagnostics.runs", "runs", cwd=tmp_path),
        output("-m", "mldiagnostics.runs", "runs", run.name, cwd=tmp_path),
        output("-m", "mldiagnostics.runs", "runs", NASTY, cwd=tmp_path),
        output("-m", "mldiagnostics.goodput", str(run), cwd=tmp_path),
        output("-m", "mldiagnostics.goodput", "--job", NASTY, cwd=tmp_path),
        output("-m", "mldiagnostics.goodput", f"./{NASTY}", cwd=tmp_path),
        output("-m", "mldiagnostics.checkpoint_badput_calculator", "--log", f"./{NASTY}", cwd=tmp_path),
    ]
    for text in outputs:
        assert printable(text, keep="\n") == text
        assert text.strip()
    assert SHOWN in outputs[1]


def test_a_message_of_another_process_is_escaped(tmp_path: Path) -> None:
    document = {"v": 1, "runId": "r", "name": NASTY, "phase": "Failed", "reason": NASTY, "message": NASTY}
    open_store(str(tmp_path)).put("r/run.json", json.dumps(document).encode())
    text = output("-m", "mldiagnostics.runs", str(tmp_path), "r", cwd=tmp_path)
    assert text.count(SHOWN) == 3
    assert "\x1b" not in text
