from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.client.exec_plugin import ExecPlugin, PluginCredential

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, os, pathlib, sys
count = pathlib.Path("count"); count.write_text(str(int(count.read_text()) + 1) if count.exists() else "1")
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
given = os.environ["GIVEN"] + info["spec"]["cluster"]["server"]
status = {"token": given + count.read_text(), "expirationTimestamp": sys.argv[1]}
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin(folder: Path, program: str, *arguments: str, **fields: Any) -> ExecPlugin:
    entry = {"command": sys.executable, "args": ["-c", program, *arguments], **fields}
    return ExecPlugin(entry, folder, {"server": "https://far"})


@pytest.mark.parametrize(("expires", "runs"), [("2999-01-01T00:00:00Z", 1), ("2001-01-01T00:00:00Z", 2)])
async def test_a_plugin_runs_again_when_its_token_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expires: str, runs: int
) -> None:
    monkeypatch.chdir(tmp_path)
    given = plugin(tmp_path, PROGRAM, expires, provideClusterInfo=True, env=[{"name": "GIVEN", "value": "x-"}])
    assert await given.token() == "x-https://far1"
    assert await given.token() == f"x-https://far{runs}"


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("raise SystemExit(3)", "exited with 3; log in again, or install it"),
        ("print('{}')", "returned no credential: its output has no status"),
        ("print('x')", "returned no credential: "),
    ],
)
async def test_a_plugin_that_fails_is_named(tmp_path: Path, program: str, problem: str) -> None:
    with pytest.raises(ClusterError, match=f"credential plugin '{sys.executable}': {problem}"):
        await plugin(tmp_path, program).credential()


async def test_a_missing_plugin_gives_its_hint(tmp_path: Path) -> None:
    missing = ExecPlugin({"command": "./none", "installHint": "run\n  install"}, tmp_path, {})
    with pytest.raises(ClusterError, match=r"/none': cannot be started: No such file or directory; run install$"):
        await missing.token()


def test_a_plugin_may_return_a_certificate() -> None:
    status = {"clientCertificateData": "C", "clientKeyData": "K"}
    credential = PluginCredential.parse(json.dumps({"status": status}).encode())
    assert credential == PluginCredential("", b"C", b"K", None)
