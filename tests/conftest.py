"""What all tests share: servers, and how properties are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.envtest import apiserver
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.envtest import ApiServer

settings.register_profile("repository", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("repository")


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A real kube-apiserver with etcd, without controllers; tests keep to namespaces of their own."""
    with apiserver() as server:
        yield server
