"""Kubeconfigs, read by our client and by the official one; the deviations are listed."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kubernetes import client, config
from mldiagnostics_kube.client import credentials

SERVER = "https://lab.test:6443"
PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"


@dataclass(frozen=True)
class Access:
    """The parts of the credentials that both clients have."""

    server: str
    token: str
    ca: str
    certificate: str
    key: str
    verified: bool
    server_name: str
    proxy: str


def ours(files: str, context: str | None) -> Access:
    """Read the files with the client of the product."""

    async def read() -> Access:
        access = (await credentials.find_access({"KUBECONFIG": files}, context=context)).credentials
        pems = [(pem or b"").decode() for pem in (access.ca_pem, access.certificate_pem, access.key_pem)]
        return Access(
            access.server,
            await access.token(),
            *pems,
            not access.insecure,
            access.server_name or "",
            access.proxy or "",
        )

    return asyncio.run(read())


def official(files: str, context: str | None) -> Access:
    """Read the files with the official client."""
    settings = client.Configuration()
    config.load_kube_config(files, context, client_configuration=settings, persist_config=False)
    pems = [
        Path(file).read_text() if file else "" for file in (settings.ssl_ca_cert, settings.cert_file, settings.key_file)
    ]
    token = settings.api_key.get("BearerToken", "").removeprefix("Bearer ")
    return Access(
        settings.host, token, *pems, settings.verify_ssl, settings.tls_server_name or "", settings.proxy or ""
    )


@dataclass(frozen=True)
class Part:
    """Fields of a cluster or a user, and the files that they name."""

    fields: dict[str, Any]
    files: dict[str, str]


def pem_fields(name: str, text: str) -> st.SearchStrategy[Part]:
    """Draw a PEM as data, as a file beside the kubeconfig, or not at all."""
    data = base64.b64encode(PEM.format(text).encode()).decode()
    return st.sampled_from(
        [
            Part({}, {}),
            Part({f"{name}-data": data}, {}),
            Part({name: f"pki/{text}.pem"}, {f"pki/{text}.pem": PEM.format(text)}),
            Part({f"{name}-data": data, name: "missing.pem"}, {}),
        ]
    )


def joined(*parts: Part) -> Part:
    """Return one part with the fields of all."""
    return Part(
        {key: value for part in parts for key, value in part.fields.items()},
        {key: value for part in parts for key, value in part.files.items()},
    )


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "insecure-skip-tls-verify": st.booleans(),
        "tls-server-name": st.just("kubernetes"),
        "proxy-url": st.just("http://proxy.test:3128"),
    },
)
TOKENS = st.sampled_from(
    [Part({}, {}), Part({"token": "secret"}, {}), Part({"tokenFile": "token"}, {"token": "from-a-file"})]
)


@st.composite
def clusters(draw: st.DrawFn) -> Part:
    """Draw a cluster."""
    options = Part({"server": SERVER + draw(st.sampled_from(["", "/", "/lab"])), **draw(OPTIONS)}, {})
    return joined(options, draw(pem_fields("certificate-authority", "ca")))


@st.composite
def users(draw: st.DrawFn) -> Part:
    """Draw a user with a token, with a certificate, with both or with none of them."""
    certificate = joined(draw(pem_fields("client-certificate", "crt")), draw(pem_fields("client-key", "key")))
    return joined(draw(TOKENS), certificate)


def write(folder: Path, *, cluster: Part, user: Part, name: str = "lab", current: str = "lab") -> Path:
    """Write a kubeconfig with one context and the files that it names."""
    for path, text in (cluster.files | user.files).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    file = folder / "config"
    file.parent.mkdir(parents=True, exist_ok=True)
    entries = {
        "clusters": [{"name": name, "cluster": cluster.fields}],
        "users": [{"name": name, "user": user.fields}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": current, **entries}))
    return file


ENTRIES = st.tuples(clusters(), users())


@given(ENTRIES, ENTRIES, st.sampled_from([None, "lab", "far"]), st.booleans())
def test_property_both_clients_read_the_same_credentials(
    lab: tuple[Part, Part], other: tuple[Part, Part], context: str | None, same_name: bool
) -> None:
    with TemporaryDirectory() as folder:
        first = write(Path(folder, "a"), cluster=lab[0], user=lab[1])
        name = "lab" if same_name else "far"
        second = write(Path(folder, "b"), cluster=other[0], user=other[1], name=name)
        files = f"{first}{os.pathsep}{Path(folder, 'missing')}{os.pathsep}{second}"
        chosen = "lab" if same_name else context
        assert ours(files, chosen) == official(files, chosen)


def test_both_clients_send_the_token_of_a_plugin(tmp_path: Path) -> None:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "fresh"}}
    plugin = tmp_path / "plugin.py"
    plugin.write_text(f"print({json.dumps(json.dumps(answer))})")
    command = {"apiVersion": answer["apiVersion"], "command": sys.executable, "args": [str(plugin)]}
    user = Part({"exec": {**command, "interactiveMode": "Never"}}, {})
    file = str(write(tmp_path / "a", cluster=Part({"server": SERVER}, {}), user=user))
    assert ours(file, None) == official(file, None)
    assert ours(file, None).token == "fresh"


class TestDeviations:
    """The differences to the official client. Ours reads as kubectl does, but for names with passwords."""

    LAB = Part({"server": SERVER}, {})

    def test_the_current_context_is_that_of_the_first_file(self, tmp_path: Path) -> None:
        first = write(tmp_path / "a", cluster=self.LAB, user=Part({"token": "first"}, {}))
        far = Part({"server": "https://far.test"}, {})
        second = write(tmp_path / "b", cluster=far, user=Part({}, {}), name="far", current="far")
        files = f"{first}{os.pathsep}{second}"
        assert (ours(files, None).server, official(files, None).server) == (SERVER, "https://far.test")

    def test_paths_of_a_user_start_at_the_file_of_the_user(self, tmp_path: Path) -> None:
        user = Part({"client-certificate": "crt", "client-key": "key"}, {"crt": "C", "key": "K"})
        first = write(tmp_path / "a", cluster=self.LAB, user=Part({}, {}), name="lab")
        entries = yaml.safe_load(first.read_text())
        first.write_text(yaml.safe_dump({**entries, "users": []}))
        second = write(tmp_path / "b", cluster=self.LAB, user=user)
        files = f"{first}{os.pathsep}{second}"
        assert (ours(files, None).certificate, ours(files, None).key) == ("C", "K")
        with pytest.raises(config.ConfigException, match="File does not exist"):
            official(files, None)

    def test_a_file_with_a_token_has_precedence_over_the_token(self, tmp_path: Path) -> None:
        user = Part({"token": "old", "tokenFile": "token"}, {"token": "renewed"})
        file = str(write(tmp_path, cluster=self.LAB, user=user))
        assert (ours(file, None).token, official(file, None).token) == ("renewed", "old")

    def test_a_plugin_that_fails_is_an_error(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/plugin", "interactiveMode": "Never"}
        file = str(write(tmp_path, cluster=self.LAB, user=Part({"exec": command}, {})))
        with pytest.raises(credentials.ConfigurationError, match="/no/plugin"):
            ours(file, None)
        assert official(file, None).token == ""
        assert "/no/plugin" in caplog.text

    def test_the_user_to_impersonate_is_sent(self, tmp_path: Path) -> None:
        file = write(tmp_path, cluster=self.LAB, user=Part({"as": "jane", "token": "t"}, {}))
        access = asyncio.run(credentials.find({"KUBECONFIG": str(file)}))
        assert access.user == {"Impersonate-User": "jane"}
        assert "jane" not in str(vars(config.new_client_from_config(str(file), persist_config=False)))

    def test_a_name_and_a_password_are_ignored(self, tmp_path: Path) -> None:
        file = str(write(tmp_path, cluster=self.LAB, user=Part({"username": "jane", "password": "p"}, {})))
        basic = f"Basic {base64.b64encode(b'jane:p').decode()}"
        assert (ours(file, None).token, official(file, None).token) == ("", basic)

    def test_an_address_without_tls_needs_no_certificates(self, tmp_path: Path) -> None:
        ca = Part({"server": "http://lab.test", "certificate-authority": "ca"}, {"ca": "CA"})
        file = str(write(tmp_path, cluster=ca, user=Part({}, {})))
        assert ours(file, None) == replace(official(file, None), ca="CA"), "both send plain HTTP"
