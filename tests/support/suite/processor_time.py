"""Measures the processor's time of each test file, and of the processes that its tests start and wait for.

Servers of a whole session end in the teardown of one test: teardowns are left out.
"""

import os
from collections import defaultdict
from collections.abc import Generator

import pytest

SHOWN = 15

FORKED_S: list[float] = []
"""Of each script that `forked_scripts` ran: the system counts it as that of a process that goes on."""


class ProcessorTime:
    """A plugin of pytest; its report is that of all of its processes."""

    def __init__(self) -> None:
        self._last_s = used_s()
        self._by_file: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logstart(self) -> None:
        """Begin with the time of a test."""
        self._last_s = used_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the time since the last report into this one, in the process that ran the test."""
        report = yield
        now_s = used_s()
        vars(report)["processor_s"] = now_s - self._last_s
        self._last_s = now_s
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a part of a test, in the process that shows the reports."""
        if report.when != "teardown":
            # A process that crashed wrote none.
            self._by_file[report.nodeid.partition("::")[0]] += getattr(report, "processor_s", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the time of all tests, and the files that cost most."""
        terminalreporter.section("processor's time")
        terminalreporter.line(f"{sum(self._by_file.values()):.2f}s all tests")
        for file in sorted(self._by_file, key=self._by_file.__getitem__, reverse=True)[:SHOWN]:
            terminalreporter.line(f"{self._by_file[file]:.2f}s processor {file}")


def used_s() -> float:
    """Return the time of this process, and of its children and forked scripts that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system + sum(FORKED_S)
