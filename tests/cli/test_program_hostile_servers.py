"""Commands against servers that do not keep to the API of Kubernetes: one sentence, never a fault of the program."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler
from io import StringIO
from random import Random
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.__main__ import run
from support.cluster.hostile_documents import hostile_document
from support.servers.local_http import served
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMANDS = [
    line.split()
    for line in """\
runs list -n ml
runs list -A -o json
runs get a -n ml
runs get abcd -A
runs compare a b -n ml
runs delete a -n ml --yes
profiles list -n ml
profiles list a -n ml
profiles get a -n ml
profiles download a -n ml
goodput a -n ml
trace a -n ml
doctor -n ml
doctor job/a -n ml
doctor a -n ml
explain a -n ml
explain jobset/a -n ml
capture run/a -n ml --dry-run
capture jobset/a -n ml --direct --dry-run
capture --selector a=b -n ml --direct --dry-run
xprof list -n ml
xprof delete gs://a/b --on kubernetes -n ml --yes
diagnose a -n ml""".splitlines()
]

STATUSES = (201, 204, 302, 400, 401, 403, 404, 409, 410, 422, 500, 503)
NO_JSON = (b"", b"<html>log in</html>", b"[]", b"null", b'"text"', b"\xff\xfe", b"{" * 5000, b"7", b'{"kind": "Sta')


class Answers(BaseHTTPRequestHandler):
    """Sends the answers of a test."""

    protocol_version = "HTTP/1.1"
    answer: ClassVar[Callable[[str, str], tuple[int, bytes]]]

    def handle_request(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = type(self).answer(self.command, self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_request  # noqa: N815 - names of the base class

    @override
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Answers]]:
    """A server, and a kubeconfig that names it."""
    folder = tmp_path_factory.mktemp("hostile")
    with served(Answers) as address, pytest.MonkeyPatch.context() as environment:
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://{address}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (folder / "kubeconfig").write_text(json.dumps(config))
        environment.setenv("KUBECONFIG", str(folder / "kubeconfig"))
        environment.chdir(folder)
        yield Answers


def shown_by(arguments: list[str]) -> tuple[int, str]:
    """Run a command in this process; return its code and its standard error."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(arguments), "mldiag")
    return code, err.getvalue()


def answers(seed: int) -> Callable[[str, str], tuple[int, bytes]]:
    """Return answers that a seed decides, independent of the order of requests."""

    def answer(method: str, path: str) -> tuple[int, bytes]:
        random = Random(f"{seed} {method} {path}")
        kind = random.random()
        status = random.choice(STATUSES) if kind < 0.1 else 200
        if kind > 0.95:
            return status, random.choice(NO_JSON)
        return status, json.dumps(hostile_document(random, method, path)).encode()

    return answer


@given(arguments=st.sampled_from(COMMANDS), seed=st.integers(0, 2**32))
def test_no_response_is_a_fault_of_the_program(server: type[Answers], arguments: list[str], seed: int) -> None:
    server.answer = staticmethod(answers(seed))
    code, shown = shown_by(arguments)
    assert code in (0, 1, 2, 64)
    assert "unexpected" not in shown
    assert "Traceback" not in shown
    assert code or not shown.startswith("mldiag: ")


@pytest.mark.parametrize("body", NO_JSON)
def test_a_list_that_is_not_json_is_one_sentence(server: type[Answers], body: bytes) -> None:
    server.answer = staticmethod(lambda _, __: (200, body))
    code, shown = shown_by(["profiles", "list", "-n", "ml"])
    assert (code, shown.count("\n")) == (1, 1)
    assert shown.startswith("mldiag: cluster 'x': ")


def test_a_document_without_a_name_is_named(server: type[Answers]) -> None:
    def answer(_: str, __: str) -> tuple[int, bytes]:
        return 200, json.dumps({"metadata": {}, "items": [{"metadata": {"uid": 7}}]}).encode()

    server.answer = staticmethod(answer)
    code, shown = shown_by(["runs", "list", "-n", "ml"])
    problem = "cluster 'x': does not respond as an API server: metadata.name is missing"
    remedy = "check its address in the kubeconfig, or choose another context"
    assert (code, shown) == (1, f"mldiag: {problem}; {remedy}\n")
