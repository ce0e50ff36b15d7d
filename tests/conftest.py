"""What all tests share: a real API server, and a process that writes no goodput log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from cluster.envtest import apiserver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.envtest import ApiServer


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A real kube-apiserver with etcd, without controllers; tests keep to namespaces of their own."""
    with apiserver() as server:
        yield server


@pytest.fixture(autouse=True)
def no_goodput_log_of_another_test() -> Iterator[None]:
    """Calculators and monitors find the log that their own process writes: not that of a recorder left behind."""
    yield
    if (outlet := sys.modules.get("mldiagnostics.goodput.outlet")) is not None:
        outlet._begun.clear()
