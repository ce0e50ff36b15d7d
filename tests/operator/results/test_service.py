"""The API for files behind a real API server, which decides about its readers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.results import API_SERVICE
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_kube.installation.result_files import copy_directory
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.results.service import ResultsApi
from support.cluster.publications import account
from support.cluster.result_servers import READ_FILES, results_served
from support.cluster.result_volumes import LAB, OTHER_RUN, RUN, SESSION, TRACE, make_volume, wanted

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

DEADLINE_S = 60
AUTHENTICATION: dict[str, Any] = {
    "apiGroups": [""],
    "resources": ["configmaps"],
    "resourceNames": ["extension-apiserver-authentication"],
    "verbs": ["get"],
}


async def test_a_reader_of_a_namespace_copies_its_files_and_no_others(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path
) -> None:
    volume = make_volume(tmp_path / "volume", namespace)
    async with (
        results_served(admin, namespace, volume),
        account(api_server, admin, namespace, [(namespace, READ_FILES)]) as client,
        account(api_server, admin, namespace, [(namespace, {**READ_FILES, "verbs": ["get"]})]) as getter,
        account(api_server, admin, namespace, [(namespace, {**READ_FILES, "verbs": ["list"]})]) as lister,
    ):
        traces = wanted(f"volume:///{SESSION}", namespace, ".xplane.pb", ".json")
        await copy_directory(client, traces, tmp_path / "session", cluster=LAB)
        assert (tmp_path / "session/trainer-0.xplane.pb").read_bytes() == TRACE
        # The run of another namespace, asked for in the reader's own and in the other one.
        with pytest.raises(ConfigurationError, match=f"not the directory of a run .* of namespace {namespace}"):
            await copy_directory(client, wanted(f"volume:///{OTHER_RUN}", namespace), tmp_path / "no", cluster=LAB)
        with pytest.raises(ClusterFailure, match="does not let you read files of namespace other; ask the admin"):
            await copy_directory(client, wanted(f"volume:///{OTHER_RUN}", "other"), tmp_path / "no", cluster=LAB)
        for half in (getter, lister):  # both verbs are needed
            with pytest.raises(ClusterFailure, match=f"does not let you read files of namespace {namespace}"):
                await copy_directory(half, traces, tmp_path / "no", cluster=LAB)


async def test_a_user_without_the_right_learns_who_can_help(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path
) -> None:
    async with account(api_server, admin, namespace) as client:
        with pytest.raises(
            ClusterFailure, match=r"ask the administrator .* which controlPlane\.files\.enabled=true of"
        ):
            await copy_directory(client, wanted(f"volume:///{RUN}", namespace), tmp_path / "no", cluster=LAB)


async def test_the_operator_needs_each_of_its_rights(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the first one it does not serve; without the others it names the object that it cannot write."""
    config = OperatorConfig(pod_namespace=namespace, results_port=0, volume_root=tmp_path)

    async def until(words: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while words not in caplog.text:  # noqa: ASYNC110 - polls the log
                await asyncio.sleep(0.02)

    for rules, words in (
        ([], 'cannot get resource "configmaps"'),
        ([("kube-system", AUTHENTICATION)], 'cannot get resource "apiservices"'),
    ):
        async with account(api_server, admin, namespace, rules) as client:
            api = ResultsApi(client, config, poll_s=0.05)
            work = asyncio.create_task(api.run())
            try:
                await until(words)
                assert api.port.done() is bool(rules)
            finally:
                work.cancel()
                await asyncio.wait({work})


async def test_a_new_leader_takes_the_registration_over(admin: ApiClient, namespace: str, tmp_path: Path) -> None:
    volume = make_volume(tmp_path / "volume", namespace)
    path = path_to("apiregistration.k8s.io", "v1", "apiservices", name=API_SERVICE)
    async with results_served(admin, namespace, volume):
        await admin.patch(path, {"spec": {"caBundle": None, "insecureSkipTLSVerify": False}})

        async def copied() -> bool:
            try:
                await copy_directory(admin, wanted(f"volume:///{RUN}", namespace), tmp_path / "copy", cluster=LAB)
            except (ClusterError, ConfigurationError, ClusterFailure):
                return False
            return True

        async with asyncio.timeout(DEADLINE_S):
            while not (await admin.get(path))["spec"].get("caBundle") or not await copied():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert (tmp_path / "copy/run.json").exists()
