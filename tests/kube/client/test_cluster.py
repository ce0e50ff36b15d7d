"""Connections of a user to a real API server, and the message of each way in which they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_kube.client.failures import ClusterFailure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cluster.envtest import ApiServer

    Write = Callable[..., str]

pytestmark = pytest.mark.apiserver


@pytest.fixture
def write(api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the kubeconfig of the environment: the administrator's, with changes of its context, cluster and user."""

    def written(*, context: dict[str, Any] | None = None, **changes: dict[str, Any]) -> str:
        config = yaml.safe_load(api_server.kubeconfig.read_text())
        entry = config["contexts"][0]
        entry["name"] = config["current-context"] = "lab"
        entry["context"].update(context or {})
        for kind, fields in changes.items():
            config[f"{kind}s"][0][kind].update(fields)
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        return str(path)

    return written


async def list_pods(**options: Any) -> str:
    async with connect(ClusterOptions(**options)) as cluster:
        await cluster.client.items(path_to("", "v1", "pods", namespace=cluster.scope), lambda _: None)
        return f"{cluster.description}, {cluster.place}, {cluster.namespace}"


async def test_the_namespace_is_that_of_the_option_the_context_or_default(write: Write) -> None:
    path = write()
    assert await list_pods() == "cluster 'lab', namespace 'default', default"
    assert await list_pods(namespace="ml") == "cluster 'lab', namespace 'ml', ml"
    write(context={"namespace": "team"})
    assert await list_pods(context="lab") == "cluster 'lab', namespace 'team', team"
    assert await list_pods(all_namespaces=True, kubeconfig=path) == "cluster 'lab', all namespaces, team"
    with pytest.raises(ConfigurationError, match="--namespace and --all-namespaces: both are given"):
        await list_pods(all_namespaces=True, namespace="ml")


async def test_a_wrong_context_names_those_that_exist(write: Write) -> None:
    path = write()
    with pytest.raises(ConfigurationError, match=rf"kubeconfig '{path}': has no context 'prod'; choose one .*: lab$"):
        await list_pods(context="prod")
    with pytest.raises(ConfigurationError, match="kubeconfig '/none': no such file; set KUBECONFIG to"):
        await list_pods(kubeconfig="/none")


async def test_a_missing_right_is_named_with_the_remedy(write: Write) -> None:
    write(user={"as": "jane"})
    with pytest.raises(ClusterFailure, match=r"cluster 'lab': refuses the request: .*cannot list.*; ask the adm"):
        await list_pods()


async def test_rejected_credentials_and_a_silent_server_are_named(write: Write) -> None:
    write(user={"client-certificate-data": "", "client-key-data": "", "token": "expired"})
    with pytest.raises(ClusterFailure, match="rejects the credentials: Unauthorized; log in again"):
        await list_pods()
    write(cluster={"server": "https://127.0.0.1:1"})
    with pytest.raises(ClusterFailure, match=r"cluster 'lab': does not respond: .*; check the network, or choose"):
        await list_pods()


async def test_a_cluster_without_the_product_gives_the_remedy(write: Write) -> None:
    write()
    with pytest.raises(ClusterFailure, match="does not have the resources of mldiagnostics; install the operator's ch"):
        async with connect(ClusterOptions()) as cluster:
            await cluster.client.get(path_to(RUNS.group, "v2", RUNS.plural))
