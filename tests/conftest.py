"""What all tests share: a real API server."""

from __future__ import annotations

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
