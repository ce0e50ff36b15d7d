"""`helm test` on a real API server: success with the run, failure with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client.apiserver import NotFound
from mldiagnostics_webhook.injectioncheck import RunNotInjected, check
from support.cluster.webhook_process import registered, webhook_process

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.namespaces import Stage

pytestmark = pytest.mark.apiserver


async def test_the_injection_check_returns_the_run_and_the_variables_of_a_pod(
    cluster: ApiClient, stage: Stage, api_server: ApiServer, tmp_path: Path
) -> None:
    async with webhook_process(api_server.kubeconfig, tmp_path) as process, registered(stage, process):
        run, variables = await check(cluster, stage.ml.name)
    assert len(run) == 64
    assert "MLDIAG_RUN_ID" in variables


async def test_without_a_webhook_it_fails_with_a_hint(cluster: ApiClient, namespace: str) -> None:
    with pytest.raises(
        RunNotInjected, match=rf"{namespace}: no run was injected .* within 0\.5 s: the webhook was not called"
    ):
        await check(cluster, namespace, deadline_s=0.5)


async def test_a_namespace_that_does_not_exist_is_named(cluster: ApiClient) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await check(cluster, "nowhere")
