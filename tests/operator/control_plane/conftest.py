"""A control plane over a namespace of a real API server.

Each fault that the control plane has to survive has a test with real ends:

* forged run id, foreign namespace or account: `test_server`, `test_peer_endpoint`
* token of another audience, damaged, of a deleted pod; expired: `test_server`; `test_server_outages`
* replayed and reordered reports: `test_table`; two leaders at a time: `test_journal`
* bodies that are too large, too deep, not JSON, gzip bombs: `test_bodies`, `test_server`, `test_openapi`
* slow senders and floods of connections: `tests/kube/serving/test_bounded_server.py`
  (of one pod: `test_server`, `test_rates`)
* clocks, workloads of one name, a workload that is deleted at once: `test_server`
* an hour without the operator, etcd away, 410 Gone: `test_server_outages`; API server away, full storage: `test_server`
* a leader that is killed in a flood: `test_service_takeover`; restarts in order: `test_server_programs`
* the definition of MLRun absent: `tests/operator/runs/test_controller.py`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.cluster.control_planes import make_account, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.control_planes import Running


@pytest.fixture
async def plane(cluster: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Running]:
    """A control plane that serves, and the service account of its clients."""
    await make_account(cluster, namespace)
    async with serving(cluster, namespace, tmp_path) as running:
        yield running
