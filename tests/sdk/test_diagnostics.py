"""Said once, counted always, by any thread, and the root logger is left alone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

import pytest
from mldiagnostics.diagnostics import announce, counts, warn_once


def test_a_problem_is_said_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        warn_once("test-once", f"a problem, {number}")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == ["a problem, 0"]
    assert counts()["test-once"] == 3


def test_threads_together_say_it_once_and_lose_no_count(caplog: pytest.LogCaptureFixture) -> None:
    threads = [
        threading.Thread(target=lambda: [warn_once("test-threads", "a problem") for _ in range(500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts()["test-threads"] == 2000
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING and r.message == "a problem"]) == 1


def shown(setup: str) -> str:
    program = f"import logging\n{setup}\nfrom mldiagnostics.diagnostics import announce\nannounce('look here')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("setup", "line"),
    [
        ("", "mldiagnostics: look here\n"),
        ("logging.basicConfig()", "mldiagnostics: look here\n"),
        ("logging.basicConfig(level=logging.INFO, format='%(message)s')", "look here\n"),
        ("logging.getLogger('mldiagnostics').setLevel(logging.ERROR)", ""),
    ],
)
def test_what_people_look_for_is_shown_once_unless_they_asked_for_quiet(setup: str, line: str) -> None:
    assert shown(setup) == line


@pytest.mark.parametrize("setup", ["import sys; sys.stderr.close()", "import sys; sys.stderr = None"])
def test_where_nothing_can_be_shown_nothing_is_raised(setup: str) -> None:
    assert shown(setup) == ""


class Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError(record.getMessage())


def test_a_handler_that_raises_does_so_to_nobody() -> None:
    handler = Broken()
    logging.root.addHandler(handler)
    try:
        warn_once("test-broken", "a problem")
        announce("a line")
    finally:
        logging.root.removeHandler(handler)
    assert counts()["test-broken"] == 1


def test_the_root_logger_is_left_alone() -> None:
    before = (logging.root.level, list(logging.root.handlers))
    warn_once("test-root", "a problem")
    announce("a line")
    assert (logging.root.level, list(logging.root.handlers)) == before


FORK = """
import os, threading
from mldiagnostics import diagnostics
with diagnostics._lock:
    thread = threading.Thread(target=lambda: diagnostics.warn_once("x", "y"))
    pid = os.fork()
    if pid == 0:
        thread.start()
        thread.join()
        os._exit(diagnostics.counts()["x"])
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_complains_although_its_parent_was_about_to() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, capture_output=True, timeout=60)
