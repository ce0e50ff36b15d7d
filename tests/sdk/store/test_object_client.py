"""Settings of S3 and Azure: profiles, private certificates, and identities without keys."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from mldiagnostics.errors import ConfigurationError, NoCredentials, StoreError, StoreForbidden, StoreUnreachable
from mldiagnostics.store import open_store
from support.servers.certificates import write_certificate
from support.servers.emulator_faults import faulty_proxy
from support.servers.object_servers import ACCOUNT, running_azurite, shared_access_signature
from support.time_limits import with_enough_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.emulator_faults import FaultyBucket
    from support.servers.object_servers import ObjectServer

pytestmark = pytest.mark.timeout(200)  # no test may wait for ever

ROLE = "arn:aws:iam::123456789012:role/runs"
TENANT, CLIENT = "5ac3a8d2-0000-4000-8000-000000000001", "5ac3a8d2-0000-4000-8000-000000000002"


def put(url: str) -> None:
    """Store and read an object."""
    store = open_store(url, timeout_s=30)
    store.put("k", b"x", replace=True)
    with store.open("k") as file:
        assert file.read() == b"x"


def put_error(url: str, expected: str) -> StoreError:
    """Return the error of a put, which should contain the expected text."""

    def error(timeout_s: float) -> StoreError:
        with pytest.raises(StoreError) as raised:
            open_store(url, timeout_s=timeout_s).put("k", b"x")
        return raised.value

    return with_enough_time(error, lambda error: expected in str(error))


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The certificate of a private authority for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    write_certificate(folder / "ca.crt", folder / "tls.key", "127.0.0.1")
    return folder / "ca.crt", folder / "tls.key"


@pytest.fixture(scope="module")
def azure_tls_server(tls: tuple[Path, Path]) -> Iterator[ObjectServer]:
    """A server of Azure's blobs with TLS, which takes tokens of identities."""
    with running_azurite(tls=tls) as server:
        server.make_bucket("runs")
        yield server


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Take the keys from the environment; returns an empty home."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AZURE_STORAGE_ACCOUNT_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


s3_only = pytest.mark.parametrize("faulty", ["s3"], indirect=True)
az_only = pytest.mark.parametrize("faulty", ["az"], indirect=True)


@s3_only
def test_a_profile_gives_keys_and_region(faulty: FaultyBucket, no_keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (no_keys / ".aws").mkdir()
    (no_keys / ".aws/config").write_text("[default]\nregion = eu-west-1\n[profile team]\nregion = eu-north-1\n")
    keys = "[{}]\naws_access_key_id = AKIA{}\naws_secret_access_key = secret\n"
    token = "aws_session_token = session-of-team\n"
    (no_keys / ".aws/credentials").write_text(keys.format("default", "DEFAULT") + keys.format("team", "TEAM") + token)
    put(faulty.url)
    assert "Credential=AKIADEFAULT/" in faulty.proxy.headers["authorization"]
    assert "/eu-west-1/s3/" in faulty.proxy.headers["authorization"]
    monkeypatch.setenv("AWS_PROFILE", "team")
    put(faulty.url)
    assert "Credential=AKIATEAM/" in faulty.proxy.headers["authorization"]
    assert "/eu-north-1/s3/" in faulty.proxy.headers["authorization"]
    assert faulty.proxy.headers["x-amz-security-token"] == "session-of-team"
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    put(faulty.url)
    assert "Credential=AKIAENVIRONMENT/" in faulty.proxy.headers["authorization"]
    assert "/us-west-2/s3/" in faulty.proxy.headers["authorization"]


@s3_only
@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("", "'team': no such profile"),
        (
            "[profile team]\nsso_session = corp\n",
            "'team': the profile has no aws_access_key_id; run `aws configure export",
        ),
    ],
)
def test_a_profile_without_keys_is_named(
    faulty: FaultyBucket, no_keys: Path, monkeypatch: pytest.MonkeyPatch, config: str, problem: str
) -> None:
    (no_keys / ".aws").mkdir()
    (no_keys / ".aws/config").write_text(config)
    monkeypatch.setenv("AWS_PROFILE", "team")
    with pytest.raises(NoCredentials, match=problem):
        put(faulty.url)
    assert not faulty.proxy.requests


def test_a_private_authority_is_trusted_by_its_file(
    s3_server: ObjectServer, s3_bucket: str, tls: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_proxy(s3_server, tls=tls) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        error = put_error(f"s3://{s3_bucket}", "the certificate of the server is not trusted: ")
        assert type(error) is StoreUnreachable
        assert re.search(r"the certificate of the server is not trusted: .*AWS_CA_BUNDLE", str(error))
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tls[0]))
        put(f"s3://{s3_bucket}")
        monkeypatch.setenv("AWS_CA_BUNDLE", "/no/such/file")
        with pytest.raises(ConfigurationError, match="'/no/such/file': cannot read the certificates"):
            put(f"s3://{s3_bucket}")


@s3_only
def test_irsa_gives_the_role_of_the_service_account(
    faulty: FaultyBucket, no_keys: Path, tls: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = no_keys / "token"
    token.write_text("token-of-the-pod")
    form = {"Action": "AssumeRoleWithWebIdentity", "RoleArn": ROLE, "RoleSessionName": "x", "WebIdentityToken": "x"}
    with urllib.request.urlopen(faulty.server.url, data=urlencode(form).encode(), timeout=60) as response:
        body = response.read()  # of moto's STS, which takes forms only
    with faulty_proxy(faulty.server, tls=tls) as sts:
        sts.otherwise = (200, {"Content-Type": "text/xml"}, body)
        for name, value in {
            "AWS_ROLE_ARN": ROLE,
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
            "AWS_ENDPOINT_URL_STS": sts.url,
            "AWS_CA_BUNDLE": str(tls[0]),
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        put(faulty.url)
        query = parse_qs(urlsplit(sts.requests[0].partition(" ")[2]).query)
        assert (query["RoleArn"], query["WebIdentityToken"]) == ([ROLE], ["token-of-the-pod"])
        [key] = re.findall(r"<AccessKeyId>(\w+)<", body.decode())
        assert f"Credential={key}/" in faulty.proxy.headers["authorization"]
        assert faulty.proxy.headers["x-amz-security-token"]

        refusal = "<Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:{}</Message></Error>"
        sts.otherwise = (403, {}, refusal.format("AssumeRoleWithWebIdentity").encode())
        with pytest.raises(StoreForbidden, match="the role was not given to this identity: AccessDenied: Not auth"):
            put(faulty.url)
        token.unlink()
        with pytest.raises(NoCredentials, match=r"no AWS credentials: Failed to read token file"):
            put(faulty.url)


@s3_only
def test_pod_identity_gives_keys_that_are_renewed_before_they_expire(
    faulty: FaultyBucket, no_keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = no_keys / "token"
    token.write_text("first-token")
    with faulty_proxy(faulty.server) as agent:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{agent.url}/v1/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
        store = open_store(faulty.url, timeout_s=30)
        agent.otherwise = pod_keys("AKIAFIRST", timedelta(minutes=1))
        store.put("a", b"x")
        assert agent.requests[0] == "GET /v1/credentials"
        assert agent.headers["authorization"] == "first-token"
        assert "Credential=AKIAFIRST/" in faulty.proxy.headers["authorization"]
        token.write_text("second-token")
        agent.otherwise = pod_keys("AKIASECOND", timedelta(hours=6))
        deadline = time.monotonic() + 60
        while "AKIASECOND" not in faulty.proxy.headers["authorization"]:  # the client waits a moment between look-ups
            assert time.monotonic() < deadline
            store.put("b", b"x")
        assert agent.headers["authorization"] == "second-token"
        agent.requests.clear()
        store.put("c", b"x")
        assert not agent.requests
        agent.otherwise = (403, {}, b"no association")
        with pytest.raises(NoCredentials, match="no AWS credentials: status 403; use IRSA or Pod Identity"):
            put(faulty.url)


def pod_keys(key: str, life: timedelta) -> tuple[int, dict[str, str], bytes]:
    """Return the response of the agent of EKS."""
    until = (datetime.now(timezone.utc) + life).strftime("%Y-%m-%dT%H:%M:%SZ")
    keys = {"AccessKeyId": key, "SecretAccessKey": "secret", "Token": "session", "Expiration": until}
    return 200, {"Content-Type": "application/json"}, json.dumps(keys).encode()


@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_a_process_without_credentials_says_so(
    s3_bucket: str, azure_container: str, no_keys: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    assert no_keys.is_dir()
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AZURE_MSI_ENDPOINT", "http://127.0.0.1:9/metadata/identity/oauth2/token")
    bucket, service = {"s3": (s3_bucket, "AWS"), "az": (azure_container, "Azure")}[scheme]
    error = put_error(f"{scheme}://{bucket}", f"no {service} credentials")
    assert type(error) is NoCredentials
    assert f"no {service} credentials" in str(error)


def azure(server: ObjectServer, tls: tuple[Path, Path], **variables: str) -> dict[str, str]:
    """Return the variables of a client without keys."""
    own = {name: value for name, value in server.environment().items() if not name.endswith("_KEY")}
    return own | {"SSL_CERT_FILE": str(tls[0])} | variables


@pytest.mark.parametrize("url", ["az://runs/p", f"abfss://runs@{ACCOUNT}.dfs.core.windows.net/p"])
def test_workload_identity_gives_tokens_for_the_service_account(
    azure_tls_server: ObjectServer,
    tls: tuple[Path, Path],
    no_keys: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
) -> None:
    token = no_keys / "token"
    token.write_text("token-of-the-pod")
    with faulty_proxy(azure_tls_server, tls=tls) as authority:
        for name, value in azure(
            azure_tls_server,
            tls,
            AZURE_CLIENT_ID=CLIENT,
            AZURE_TENANT_ID=TENANT,
            AZURE_FEDERATED_TOKEN_FILE=str(token),
            AZURE_AUTHORITY_HOST=f"{authority.url}/",  # as AKS sets it
        ).items():
            monkeypatch.setenv(name, value)
        authority.otherwise = issued(access_token())
        put(url)
        assert authority.requests == [f"POST /{TENANT}/oauth2/v2.0/token"]

        refusal = {"error": "invalid_client", "error_description": "AADSTS700213: No matching record.\r\nTrace ID: 1"}
        authority.otherwise = (401, {"Content-Type": "application/json"}, json.dumps(refusal).encode())
        with pytest.raises(StoreForbidden, match="not given to this identity: AADSTS700213: No matching record; let"):
            put(url)
        token.unlink()
        with pytest.raises(NoCredentials, match="no Azure credentials: Error reading federated token file"):
            put(url)


def issued(token: str) -> tuple[int, dict[str, str], bytes]:
    """Return the response of Azure's token service."""
    return (
        200,
        {"Content-Type": "application/json"},
        json.dumps({"access_token": token, "expires_in": 3600, "token_type": "Bearer"}).encode(),
    )


def access_token() -> str:
    """Return a token whose claims the server accepts; it does not check the signature."""
    now = int(time.time())
    claims = {
        "aud": "https://storage.azure.com",
        "iss": f"https://sts.windows.net/{TENANT}/",
        "iat": now - 60,
        "nbf": now - 60,
        "exp": now + 3600,
        "appid": CLIENT,
        "oid": CLIENT,
        "sub": CLIENT,
        "tid": TENANT,
        "ver": "1.0",
    }
    parts = ({"alg": "RS256", "typ": "JWT"}, claims)
    encoded = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, "c2lnbmF0dXJl"))


@az_only
def test_a_shared_access_signature_gives_the_rights_that_it_names(
    faulty: FaultyBucket, no_keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert no_keys.is_dir()
    container = faulty.url.split("/")[2]
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", shared_access_signature(container, "racwdl", later))
    put(faulty.url)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", shared_access_signature(container, "rl", later))
    store = open_store(faulty.url, timeout_s=30)
    assert [entry.key for entry in store.list()] == ["k"]
    with pytest.raises(StoreForbidden, match=r"forbidden: AuthorizationPermissionMismatch: .*Storage Blob Data"):
        store.put("other", b"x")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", shared_access_signature(container, "rl", later - timedelta(hours=2)))
    with pytest.raises(StoreForbidden, match="the credentials were rejected: Auth") as raised:
        list(open_store(faulty.url, timeout_s=30).list())
    assert "sig=" not in str(raised.value)
