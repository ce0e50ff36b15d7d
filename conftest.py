"""Rules for every test: a clean environment, and with MLDIAG_REQUIRE_ALL=1 no test may be skipped.

Tests that need root are the exception: `sudo make root` runs these.
"""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.stage_process import FAILED_NOW

# Each run draws other examples; `make fuzz` draws many.
settings.register_profile("default", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

REQUIRE_ALL = os.environ.get("MLDIAG_REQUIRE_ALL") == "1"
AMBIENT = (
    "STORAGE_EMULATOR_HOST",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "JAX_PLATFORMS",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
)
AMBIENT_PREFIXES = ("MLDIAG_", "GKE_DIAGON_", "DIAGON_", "SLURM_", "OTEL_", "TPU_", "KUBERNETES_", "ML_GOODPUT_")
IS_ROOT = os.geteuid() == 0
NEEDS_ROOT = "needs root; run `sudo make root`"
OUR_OWN = ("MLDIAG_CACHE", "MLDIAG_KUBERNETES", "MLDIAG_REQUIRE_ALL")


class FailuresAtOnce:
    """Names each failed test when it fails; pytest shows them at its end only."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the name on a line of its own."""
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write(f"\n{FAILED_NOW}{report.nodeid}\n", flush=True)


def pytest_configure(config: pytest.Config) -> None:
    """Let tests interrupt their programs: one that is started in the background inherits that SIGINT is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(FailuresAtOnce(config))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove variables of the machine on which a test could depend."""
    for name in tuple(os.environ):
        if name in AMBIENT or (name.startswith(AMBIENT_PREFIXES) and name not in OUR_OWN):
            monkeypatch.delenv(name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs root, as another user."""
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
