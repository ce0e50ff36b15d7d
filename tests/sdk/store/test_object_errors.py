"""Errors of S3 and Azure, from servers and from a proxy that answers as the services do."""

from __future__ import annotations

import socket
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import (
    ConfigurationError,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)
from mldiagnostics.store import open_store
from support.time_limits import with_enough_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.store import Store
    from support.servers.emulator_faults import Answer, FaultyBucket

MIB = 1024 * 1024
VERBS: dict[str, Callable[[Store], object]] = {
    "put": lambda store: store.put("k", b"x"),
    "put on a condition": lambda store: store.put("k", b"y", replace=b"x".__eq__),
    "put in parts": lambda store: store.put("k", iter([b"x" * (9 * MIB)])),
    "open": lambda store: store.open("k"),
    "list": lambda store: list(store.list()),
    "folders": lambda store: list(store.folders()),
    "delete": lambda store: store.delete("k"),
    "delete all": lambda store: store.delete_all("d"),
}

pytestmark = pytest.mark.timeout(200)  # no test may wait for ever


def answer(status: int, code: str, message: str = "Message of the service.", detail: str = "") -> Answer:
    """Return a response as the services write it."""
    more = f"<AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail>" if detail else ""
    body = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>'
    return status, {"Content-Type": "application/xml"}, body.encode()


TOO_OLD = "Request date header too old: 'Wed, 25 Nov 2026 08:00:00 GMT'"
OUT_OF_TIME = "Signature not valid in the specified time frame: Expiry [Wed, 25 Nov 2026 08:00:00 GMT]"

RESPONSES: dict[str, list[tuple[Answer, type[StoreError], str]]] = {
    "s3": [
        (answer(404, "NoSuchBucket"), StoreNotFound, "the bucket does not exist"),
        (answer(403, "AccessDenied"), StoreForbidden, "grant this identity s3:"),
        ((403, {}, b""), StoreForbidden, "grant this identity s3:"),
        (answer(403, "InvalidAccessKeyId"), StoreForbidden, "the credentials were rejected"),
        (answer(403, "SignatureDoesNotMatch"), StoreForbidden, "the credentials were rejected"),
        (answer(400, "ExpiredToken"), StoreForbidden, "the token has expired"),
        (answer(403, "RequestTimeTooSkewed"), StoreForbidden, "the clock of this machine"),
        (answer(301, "PermanentRedirect"), StoreError, "set AWS_REGION to the region of the bucket"),
        (answer(400, "AuthorizationHeaderMalformed"), StoreError, "set AWS_REGION to the region of the bucket"),
        (answer(403, "QuotaExceeded"), StoreFull, "the store is full"),
        (answer(400, "InvalidRequest"), StoreError, "InvalidRequest: Message of the service; see"),
    ],
    "az": [
        (answer(404, "ContainerNotFound"), StoreNotFound, "the bucket does not exist"),
        (answer(403, "AuthorizationPermissionMismatch"), StoreForbidden, "grant this identity the role"),
        ((403, {}, b""), StoreForbidden, "grant this identity the role"),
        (answer(403, "AuthenticationFailed"), StoreForbidden, "the credentials were rejected"),
        (answer(403, "AuthenticationFailed", detail=OUT_OF_TIME), StoreForbidden, "the token has expired"),
        (answer(401, "InvalidAuthenticationInfo", "Token is expired."), StoreForbidden, "the token has expired"),
        (answer(403, "AuthenticationFailed", detail=TOO_OLD), StoreForbidden, "the clock of this machine"),
        (answer(409, "AccountIsDisabled"), StoreError, "AccountIsDisabled: Message of the service; see"),
    ],
}


ACTIONS = {
    "put": "write",
    "put on a condition": "read",
    "put in parts": "write",
    "open": "read",
    "list": "list",
    "folders": "list",
    "delete": "read",
    "delete all": "list",
}
"""The action of the first request of each verb, which is forbidden."""
RIGHTS = {
    "s3": {"list": "s3:ListBucket", "read": "s3:GetObject", "write": "s3:PutObject"},
    "az": {
        "list": "the role Storage Blob Data Reader on the container, or a signature with the permission l",
        "read": "the role Storage Blob Data Reader on the container, or a signature with the permission r",
        "write": "the role Storage Blob Data Contributor on the container, or a signature with the permissions c and w",
    },
}


@pytest.mark.parametrize(
    ("faulty", "number"),
    [(scheme, number) for scheme, responses in RESPONSES.items() for number in range(len(responses))],
    indirect=["faulty"],
)
def test_each_response_has_its_exception_and_words(faulty: FaultyBucket, number: int) -> None:
    response, kind, words = RESPONSES[faulty.scheme][number]
    store = open_store(faulty.url, timeout_s=30)
    faulty.proxy.otherwise = response
    for verb in VERBS.values():
        with pytest.raises(StoreError) as raised:
            verb(store)
        assert type(raised.value) is kind
        assert str(raised.value).startswith(faulty.url)
        assert words in str(raised.value)
        assert "127.0.0.1" not in str(raised.value)  # no URL of a request, which may have a signature


def test_the_right_that_a_request_needs_is_named(faulty: FaultyBucket) -> None:
    store = open_store(faulty.url, timeout_s=30)
    faulty.proxy.otherwise = (403, {}, b"")
    for name, action in ACTIONS.items():
        with pytest.raises(StoreForbidden) as raised:
            VERBS[name](store)
        assert f"; grant this identity {RIGHTS[faulty.scheme][action]}" in str(raised.value), name


def message(url: str, expected: str, *, is_complete: Callable[[], bool] = lambda: True) -> str:
    """Return the kind and text of the error of a put, which should contain the expected text."""

    def error(timeout_s: float) -> str:
        with pytest.raises(StoreError) as raised:
            open_store(url, timeout_s=timeout_s).put("k", b"x")
        return f"{type(raised.value).__name__}: {raised.value}"

    return with_enough_time(error, lambda text: expected in text and is_complete())


@pytest.mark.parametrize("verb", VERBS)
def test_a_server_that_does_not_respond_is_unreachable(faulty: FaultyBucket, verb: str) -> None:
    store = open_store(faulty.url, timeout_s=1.2)
    faulty.proxy.otherwise = "hang"
    with pytest.raises(StoreUnreachable, match="no valid response in time: the server did not respond; check"):
        VERBS[verb](store)


def test_a_server_that_stays_busy_is_unreachable(faulty: FaultyBucket) -> None:
    code = {"s3": "SlowDown", "az": "ServerBusy"}[faulty.scheme]
    faulty.proxy.otherwise = answer(503, code, "Reduce your request rate.")
    expected = f"no valid response in time: {code}: Reduce your request rate; check the network"
    text = message(faulty.url, expected, is_complete=lambda: len(faulty.proxy.requests) > 1)
    assert text.startswith("StoreUnreachable: ")
    assert expected in text
    assert len(faulty.proxy.requests) > 1


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT"])
def test_a_refused_connection_is_unreachable(
    s3_bucket: str, azure_container: str, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    url = {"AWS_ENDPOINT_URL": f"s3://{s3_bucket}", "AZURE_STORAGE_ENDPOINT": f"az://{azure_container}"}[variable]
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv(variable, f"http://127.0.0.1:{unused.getsockname()[1]}")
        expected = f"StoreUnreachable: {url}/k: no valid response in time: Connection refused; check"
        assert expected in message(url, expected)


def test_an_endpoint_without_a_scheme_is_rejected(s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "minio.storage:9000")
    with pytest.raises(ConfigurationError, match=r"'minio\.storage:9000': the endpoint is not a URL; write https://"):
        list(open_store(f"s3://{s3_bucket}").list())


def test_a_key_that_the_server_rejects_is_named(azure_container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", b64encode(b"another key" * 3).decode())
    expected = "the credentials were rejected: AuthorizationFailure: Server failed to authenticate the request"
    assert expected in (text := message(f"az://{azure_container}", expected))
    assert "StoreForbidden" in text
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "%%%")
    expected = "the credentials were rejected: Invalid Access Key"
    assert expected in message(f"az://{azure_container}", expected)
