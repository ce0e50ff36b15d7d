"""Rules for every test: a world of its own, and with MLDIAG_REQUIRE_ALL=1 no test may be skipped.

Tests that need root are the exception: `sudo make root` runs these.
"""

import gc
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.suite.isolation import World
from support.suite.processor_time import ProcessorTime
from support.suite.stage_process import FAILED_NOW

# Each run draws other examples; `make fuzz` draws many.
settings.register_profile("default", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

REQUIRE_ALL = os.environ.get("MLDIAG_REQUIRE_ALL") == "1"
IS_ROOT = os.geteuid() == 0
WORLD = pytest.StashKey[World]()
NEEDS_ROOT = "needs root; run `sudo make root`"
FIRST_STARTED = pytest.StashKey[float]()
TOO_LATE = "not reached in the time of `make quick`; run `make unit`"
SELECTED_IN_FILES = ("apiserver", "cluster", "peers")
"""Marks that stand in the file of each test that has one, so that a run of these tests imports no other file."""


class FailuresAtOnce:
    """Names each failed test when it fails; pytest shows them at its end only."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the name on a line of its own."""
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write(f"\n{FAILED_NOW}{report.nodeid}\n", flush=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--start-within", type=float, help="skip tests that start this many seconds after the first")
    parser.addoption("--marked", action="append", default=[], help="read only test files that have this mark")


def pytest_configure(config: pytest.Config) -> None:
    # The garbage collector would take half of the time in which test files are imported.
    gc.disable()
    # Let tests interrupt their programs: those started in the background or by nohup inherit that signals are ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # this process still ignores it
    config.stash[WORLD] = World()
    config.pluginmanager.register(FailuresAtOnce(config))
    config.pluginmanager.register(ProcessorTime())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave test files without the chosen marks out: to import them takes longer than most tests."""
    marks = config.getoption("marked")
    if not marks or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text()
    return None if any(f"mark.{mark}" in text for mark in marks) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a mark that `--marked` does not see."""
    texts: dict[Path, str] = {}
    for item in items:
        for mark in SELECTED_IN_FILES:
            if item.get_closest_marker(mark) is None:
                continue
            if f"mark.{mark}" not in texts.setdefault(item.path, item.path.read_text()):
                raise pytest.UsageError(f"{item.nodeid}: `mark.{mark}` does not stand in its file; write it there")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage while tests run, without looking at all that was imported for them each time."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[WORLD].remove()
    gc.unfreeze()  # else extension modules report leaks at the end of the interpreter


@pytest.fixture(autouse=True)
def own_folders(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a home and a temporary folder of its own."""
    for name, value in pytestconfig.stash[WORLD].folders().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need root, as another user, and those that come too late."""
    since = time.monotonic() - item.config.stash.setdefault(FIRST_STARTED, time.monotonic())
    if (seconds := item.config.getoption("start_within")) and since > seconds:
        pytest.skip(TOO_LATE)
    if not IS_ROOT and item.get_closest_marker("root"):
        pytest.skip(NEEDS_ROOT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    report: pytest.TestReport = yield  # type: ignore[misc]  # a wrapper receives the report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    run_later = NEEDS_ROOT in str(reason)
    if REQUIRE_ALL and report.skipped and not run_later and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped although MLDIAG_REQUIRE_ALL=1 asks for everything: {reason}"
    return report
