"""A control plane over a namespace of a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.control_planes import make_account, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client import ApiClient
    from support.control_planes import Running


@pytest.fixture
async def plane(cluster: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Running]:
    """A control plane that serves, and the service account of its clients."""
    await make_account(cluster, namespace)
    async with serving(cluster, namespace, tmp_path) as running:
        yield running
