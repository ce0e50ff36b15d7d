"""Warnings are logged once and counted, by any thread, on our own logger."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

import pytest
from mldiagnostics.diagnostics import announce, counts, warn_once


def test_a_problem_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        warn_once("test-once", f"a problem, {number}")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == ["a problem, 0"]
    assert counts()["test-once"] == 3


def test_concurrent_threads_log_once_and_lose_no_count(caplog: pytest.LogCaptureFixture) -> None:
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
def test_an_announcement_is_shown_once_unless_the_logger_is_silenced(setup: str, line: str) -> None:
    assert shown(setup) == line


@pytest.mark.parametrize("setup", ["import sys; sys.stderr.close()", "import sys; sys.stderr = None"])
def test_an_announcement_never_raises(setup: str) -> None:
    assert shown(setup) == ""


class Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError(record.getMessage())


def test_an_exception_of_a_log_handler_is_suppressed() -> None:
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
def test_a_forked_child_can_warn_while_its_parent_held_the_lock() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, capture_output=True, timeout=60)


def test_the_level_and_the_handlers_of_googles_logger_apply() -> None:
    lines = list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    google = logging.getLogger("google_cloud_mldiagnostics")
    google.addHandler(handler)
    google.setLevel(logging.DEBUG)
    try:
        logging.getLogger("mldiagnostics").debug("in detail")
        assert lines == ["in detail"]
    finally:
        google.removeHandler(handler)
        google.setLevel(logging.NOTSET)
