from __future__ import annotations

import base64
import json
import ssl
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cluster.certificates import make_certificates
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.client.api_client import ApiClient, credentials
from mldiagnostics_kube.client.apiserver import ClusterError

if TYPE_CHECKING:
    from pathlib import Path

SERVER = "https://127.0.0.1:1"


def kubeconfig(folder: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> str:
    path = folder / "kubeconfig"
    body = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": SERVER, **(cluster or {})}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "users": [{"name": "me", "user": user or {}}],
    }
    path.write_text(json.dumps(body))
    return str(path)


async def test_without_credentials_the_error_names_the_files() -> None:
    with pytest.raises(ConfigurationError, match="kubeconfig '/nonexistent': "):
        await credentials.find({"KUBECONFIG": "/nonexistent"})
    with pytest.raises(ConfigurationError, match=r"kubeconfig '/nowhere/\.kube/config'"):
        await credentials.find({"HOME": "/nowhere"})
    with pytest.raises(ConfigurationError, match="service account"):
        await credentials.find({"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "10.0.0.1"})


@pytest.mark.parametrize("text", ["", "[]", "{", "current-context: other", "\x00"])
async def test_a_broken_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"kubeconfig '{path}': "):
        await credentials.find({"KUBECONFIG": str(path)})


async def test_a_token_is_in_the_kubeconfig_or_in_a_file_that_is_renewed(tmp_path: Path) -> None:
    access = await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, user={"token": "secret"})})
    assert (access.server, await access.token()) == (SERVER, "secret")
    access = await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, user={"tokenFile": "token"})})
    with pytest.raises(ClusterError, match="token': cannot be read"):
        await access.token()
    for content in ("first", "second"):
        (tmp_path / "token").write_text(f"{content}\n")
        assert await access.token() == content


@pytest.mark.parametrize("inline", [True, False])
async def test_certificates_are_data_or_files_beside_the_kubeconfig(tmp_path: Path, *, inline: bool) -> None:
    made = make_certificates(tmp_path / "pki", hosts=["127.0.0.1"])
    pems = {
        "certificate-authority": made.ca.read_bytes(),
        "client-certificate": made.certificate("admin").read_bytes(),
        "client-key": made.key("admin").read_bytes(),
    }
    for name, content in pems.items():
        (tmp_path / name).write_bytes(content)
    entries = {
        name: {f"{name}-data": base64.b64encode(content).decode()} if inline else {name: name}
        for name, content in pems.items()
    }
    path = kubeconfig(
        tmp_path, cluster=entries["certificate-authority"], user=entries["client-certificate"] | entries["client-key"]
    )
    access = await credentials.find({"KUBECONFIG": path})
    assert (access.ca_pem, access.certificate_pem, access.key_pem) == tuple(pems.values())
    tls = access.tls()
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert len(tls.get_ca_certs()) == 1


async def test_a_server_may_be_unverified_or_without_tls(tmp_path: Path) -> None:
    access = await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True})})
    tls = access.tls()
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_NONE
    plain = await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, cluster={"server": "http://127.0.0.1:1/"})})
    assert (plain.server, plain.tls()) == ("http://127.0.0.1:1", None)


async def test_bad_certificates_are_rejected(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, cluster={"certificate-authority-data": base64.b64encode(b"nonsense").decode()})
    with pytest.raises(ConfigurationError, match=f"API server '{SERVER}': cannot connect: invalid certificate or key"):
        await ApiClient.connect({"KUBECONFIG": path})


async def test_a_credential_plugin_gives_the_token(tmp_path: Path) -> None:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "fresh"}}
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"print({json.dumps(answer)!r})"],
        "interactiveMode": "Never",
    }
    access = await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, user={"exec": plugin})})
    assert (access.server, await access.token()) == (SERVER, "fresh")


async def test_proxy_name_and_user_are_those_of_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://of-the-shell:3128")
    monkeypatch.setenv("no_proxy", "")
    plain = await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, user={"as": "jane"})})
    assert (plain.proxy, plain.server_name, plain.user) == (
        "http://of-the-shell:3128",
        None,
        {"Impersonate-User": "jane"},
    )
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert (await credentials.find({"KUBECONFIG": kubeconfig(tmp_path)})).proxy is None
    own = {"proxy-url": "http://own:3128", "tls-server-name": "api"}
    access = await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, cluster=own)})
    assert (access.proxy, access.server_name) == ("http://own:3128", "api")


async def test_the_token_of_an_oidc_provider_is_used(tmp_path: Path) -> None:
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": "signed"}}}
    assert await (await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, user=user)})).token() == "signed"
    user["auth-provider"]["name"] = "gcp"
    with pytest.raises(ConfigurationError, match="auth-provider 'gcp' has no token; use a credential plugin"):
        await credentials.find({"KUBECONFIG": kubeconfig(tmp_path, user=user)})
