"""Words for connections that fail, by real servers that do."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.client.failures import failure_of
from support.servers.report_servers import report_server

if TYPE_CHECKING:
    from collections.abc import Iterator

TERMS = ("ssl:", "[", "_", "Errno")
"""Terms of the libraries below."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses by their fault."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        unused = stack.enter_context(closing(socket.socket()))
        unused.bind(("127.0.0.1", 0))  # bound, but it does not listen
        yield {
            "refused": f"http://127.0.0.1:{unused.getsockname()[1]}",
            "unknown": "https://api.invalid:6443",
            "self-signed": stack.enter_context(report_server(folder / "tls")).url,
            "plain": stack.enter_context(report_server(folder / "plain", tls=False)).url.replace("http:", "https:"),
        }


@pytest.mark.parametrize(
    ("server", "problem", "remedy"),
    [
        ("refused", "connection refused by {}", "check the network"),
        ("unknown", "the host name 'api.invalid' cannot be resolved", "check the network"),
        (
            "self-signed",
            "the certificate of {} is not trusted: ",
            "set certificate-authority of the cluster in the kub",
        ),
        ("plain", "no TLS connection to {}: ", "correct the server's address in the kubeconfig"),
    ],
)
async def test_a_connection_that_fails_has_a_cause_in_words(
    servers: dict[str, str], server: str, problem: str, remedy: str
) -> None:
    shown = await failure(Credentials(servers[server], fixed("")))
    address = servers[server].rpartition("/")[2]
    assert shown.startswith(f"cluster 'lab': does not respond: {problem.format(address)}")
    assert f"; {remedy}" in shown
    assert shown.endswith(", or choose another context of the kubeconfig")


async def test_a_proxy_that_does_not_run_is_named(servers: dict[str, str]) -> None:
    shown = await failure(Credentials("http://127.0.0.1:1", fixed(""), proxy=servers["refused"]))
    address = servers["refused"].rpartition("/")[2]
    assert f"does not respond: connection refused by the proxy {address}; check the network, or" in shown


async def failure(access: Credentials) -> str:
    """Return the message of a request that fails; neither it nor that of the log has terms of libraries."""
    client = ApiClient(access)
    try:
        with pytest.raises(ClusterError) as failed:
            await client.get("/version")
    finally:
        await client.aclose()
    shown = str(failure_of(failed.value, cluster="cluster 'lab'"))
    assert not [term for term in TERMS if term in shown or term in str(failed.value)]
    return shown
