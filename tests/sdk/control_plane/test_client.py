"""One report over real HTTPS, to servers that misbehave."""

from __future__ import annotations

import json
import os
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.control_plane.answers import Acknowledgement
from mldiagnostics.control_plane.client import ControlPlaneClient, ReportFailed
from mldiagnostics.control_plane.endpoint import Endpoint, endpoint
from support.servers.report_servers import TOKEN, Answer, ReportServer, report_server

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = json.dumps({"incarnation": "0a0a0a0a", "sequence": 7}).encode()
RUN = "a/b"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReportServer]:
    with report_server(tmp_path_factory.mktemp("control")) as server:
        yield server


@pytest.fixture
def server(served: ReportServer) -> ReportServer:
    served.reports.clear()
    served.refused.clear()
    served.answers.clear()
    return served


def known(server: ReportServer) -> Endpoint:
    return endpoint(server.url, "MLDIAG_CONTROL_PLANE_URL", token_file=str(server.token_file), ca_file=server.ca)


@pytest.fixture
def client(server: ReportServer) -> Iterator[ControlPlaneClient]:
    made = ControlPlaneClient(known(server), RUN)
    yield made
    made.close()


def failure(client: ControlPlaneClient, *, timeout_s: float = 20) -> ReportFailed:
    with pytest.raises(ReportFailed) as caught:
        client.send(BODY, timeout_s=timeout_s)
    return caught.value


def first_failure(target: Endpoint, *, timeout_s: float = 20) -> ReportFailed:
    with closing(ControlPlaneClient(target, RUN)) as client:
        return failure(client, timeout_s=timeout_s)


def test_reports_share_a_connection(server: ReportServer, client: ControlPlaneClient) -> None:
    before = server.connections
    for _ in range(3):
        assert client.send(BODY, timeout_s=20) == Acknowledgement(7, 0, 1)
    assert [report["path"] for report in server.reports] == ["/v1/runs/a%2Fb/reports"] * 3
    assert server.connections == before + 1


@pytest.mark.parametrize(
    ("answer", "fault", "words"),
    [
        (Answer(400), "rejected", "it answered 400: of the test"),
        (Answer(422, b'{"error": "\\u001b[31m' + b"x" * 5000 + b'"}'), "rejected", "it answered 422: "),
        (Answer(413, b"[]"), "too-large", "it answered 413"),
        (Answer(401, b""), "denied", "check that the token has the audience mldiagnostics"),
        (Answer(403, b'{"error": 5}'), "denied", "that this pod belongs to the run"),
        (Answer(404, b"<html>"), "not-found", "check that the URL is that of the mldiagnostics operator's API"),
        (Answer(500), "busy", "it answered 500"),
        (Answer(302, b"", {"Location": "https://elsewhere"}), "answer", "it answered 302"),
        (Answer(200, b"<html>"), "answer", "its answer is not one of a control plane"),
        (Answer(200, b""), "answer", "its answer is not one of a control plane"),
    ],
)
def test_a_refusal_is_explained_and_the_next_report_is_sent(
    server: ReportServer, client: ControlPlaneClient, answer: Answer, fault: str, words: str
) -> None:
    server.answers.append(answer)
    refused = failure(client)
    assert refused.fault == fault
    assert str(refused).startswith(f"control plane {server.url}: ")
    assert words in str(refused)
    assert str(refused).isprintable()
    assert len(str(refused)) < 500
    assert client.send(BODY, timeout_s=20).sequence == 7


def test_a_busy_server_says_when_to_come_back(server: ReportServer, client: ControlPlaneClient) -> None:
    server.answers += [Answer(503, headers={"Retry-After": "7"}), Answer(429)]
    assert (failure(client).retry_after_s, failure(client).retry_after_s) == (7.0, None)


def test_a_connection_that_was_closed_meanwhile_is_replaced(server: ReportServer, client: ControlPlaneClient) -> None:
    client.send(BODY, timeout_s=20)
    server.answers.append(Answer())
    assert client.send(BODY, timeout_s=20).sequence == 7
    assert server.refused == [None]


def test_a_reset_of_a_new_connection_is_a_failure(server: ReportServer, client: ControlPlaneClient) -> None:
    server.answers.append(Answer())
    assert failure(client).fault == "unreachable"
    assert client.send(BODY, timeout_s=20).sequence == 7


def test_a_new_token_is_used_for_the_next_report(server: ReportServer, client: ControlPlaneClient) -> None:
    server.token = "next"
    try:
        assert failure(client).fault == "denied"
        server.token_file.write_text("next\n")
        assert client.send(BODY, timeout_s=20).sequence == 7
    finally:
        server.token = TOKEN
        server.token_file.write_text(TOKEN)


@pytest.mark.parametrize("content", [None, b"", b"a\nb", "tökén".encode()])
def test_a_token_that_cannot_be_read_is_a_failure(server: ReportServer, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        Path(tmp_path, "token").write_bytes(content)
    refused = first_failure(replace(known(server), token_file=str(tmp_path / "token")))
    assert refused.fault == "token"
    assert "mount a token of the pod's service account with the audience mldiagnostics" in str(refused)
    assert server.reports == []


@pytest.mark.parametrize("field", ["token_file", "ca_file"])
@pytest.mark.parametrize("kind", ["endless", "pipe"])
def test_a_special_file_fails_at_once(server: ReportServer, tmp_path: Path, field: str, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = {"endless": "/dev/zero", "pipe": str(tmp_path / "pipe")}[kind]
    endpoint = replace(known(server), **{field: path})  # type: ignore[arg-type]
    assert first_failure(endpoint).fault == {"token_file": "token", "ca_file": "certificate"}[field]


def test_another_authority_is_not_trusted(server: ReportServer, tmp_path: Path) -> None:
    with report_server(tmp_path / "other") as other:
        refused = first_failure(replace(known(server), ca_file=other.ca))
    assert refused.fault == "certificate"
    assert "set MLDIAG_CONTROL_PLANE_CA" in str(refused)
    assert first_failure(replace(known(server), ca_file="")).fault == "certificate"
    assert server.reports == []


def test_a_certificate_for_another_host_is_not_trusted(tmp_path: Path) -> None:
    with report_server(tmp_path / "other", host="elsewhere") as other:
        assert first_failure(known(other)).fault == "certificate"
        assert other.reports == []


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_certificates_that_cannot_be_read_are_a_failure(
    server: ReportServer, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    refused = first_failure(replace(known(server), ca_file=str(file)))
    assert refused.fault == "certificate"
    assert f"MLDIAG_CONTROL_PLANE_CA='{file}' cannot be read" in str(refused)


def test_a_server_that_says_nothing_is_left_after_the_time_limit(server: ReportServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        refused = first_failure(replace(known(server), url=url), timeout_s=0.05)
    assert refused.fault == "unreachable"
    assert "timed out" in str(refused)


def test_no_token_is_sent_without_encryption(tmp_path: Path) -> None:
    with report_server(tmp_path / "plain", tls=False) as plain:
        url = plain.url.replace("127.0.0.1", "127.1")  # this host, but not known as such
        refused = first_failure(replace(known(plain), url=url))
        assert refused.fault == "denied"
        assert "a token is sent by HTTPS only; use an https:// URL" in str(refused)
        with closing(ControlPlaneClient(known(plain), RUN)) as client:
            assert client.send(BODY, timeout_s=20).sequence == 7
