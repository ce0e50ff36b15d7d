"""Standard output has one whole line per record, between the program's own output."""

from __future__ import annotations

import fcntl
import os
import select
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.records import decode
from support.records import DEADLINE_S, program, run_program

if TYPE_CHECKING:
    from pathlib import Path

BODY = """
run = begin("stdout:")
for step in range(2000):
    metrics.record("loss", float(step), step=step)
    if step % 10 == 0:
        print("printed", step, flush=True)
run.close(60)
"""


def test_each_record_is_one_line_beside_printed_lines(tmp_path: Path) -> None:
    result = run_program(BODY, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    written = result.stdout.splitlines()
    printed = [line for line in written if line.startswith("printed")]
    assert printed == [f"printed {step}" for step in range(0, 2000, 10)]
    assert [decode(line).step for line in written if line not in set(printed)] == list(range(2000))


def test_goodput_records_are_not_printed(tmp_path: Path) -> None:
    body = 'run.append("event", "goodput", payload={"step_count": 1}); run.append("event", "goodput?")\n'
    result = run_program(f"run = begin('stdout:')\n{body}run.close(60)", tmp_path)
    assert [decode(line).name for line in result.stdout.splitlines()] == ["goodput?"]


def test_a_slow_reader_and_a_non_blocking_pipe_lose_nothing(tmp_path: Path) -> None:
    process = program(
        "os.set_blocking(1, False)\n" + BODY.replace('print("printed", step, flush=True)', "pass"), tmp_path
    )
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 4096)
    text = b""
    while select.select([descriptor], [], [], DEADLINE_S)[0] and (piece := os.read(descriptor, 1000)):
        text += piece
    assert process.wait(DEADLINE_S) == 0
    process.communicate()
    assert [decode(line).step for line in text.splitlines()] == list(range(2000))


def test_a_closed_pipe_is_logged_and_stops_only_this_sink(tmp_path: Path) -> None:
    process = program(
        "while not os.path.exists(sys.argv[1] + '/go'): time.sleep(0.01)\n"
        "run = begin('stdout:', 'jsonl:')\nmetrics.record('loss', 1.0)",
        tmp_path,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    (tmp_path / "go").touch()
    errors = process.stderr.read()
    assert process.wait(DEADLINE_S) == 0
    process.stderr.close()
    assert "standard output is closed: Broken pipe" in errors
    assert "Traceback" not in errors
