"""Sessions in buckets of S3 and Azure, opened by the unmodified XProf from a bounded copy."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.store import open_store
from support.programs.command_line import CommandLine
from support.servers.buckets import BUCKETS
from support.servers.profiler_process import profiler_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT_S = 120


@pytest.fixture
def mldiag(tmp_path: Path, opener: str) -> Iterator[CommandLine]:
    """The command line with a state, a cache and a browser of its own."""
    folders = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    mldiag = CommandLine(tmp_path, env={**folders, "BROWSER": opener})
    yield mldiag
    for server in mldiag.document("xprof", "list", "--on", "local"):
        mldiag.run("xprof", "delete", server["name"], "--on", "local", "--yes")


@pytest.mark.peers
@pytest.mark.parametrize("scheme", ["s3", "az"])
def test_a_capture_in_a_bucket_is_opened_from_its_copy(
    scheme: str, mldiag: CommandLine, request: pytest.FixtureRequest
) -> None:
    url = f"{scheme}://{request.getfixturevalue(BUCKETS[scheme])}/runs"
    [server] = json.loads(mldiag.run("xprof", "create", url, "--cache-size", "2Mi", "-o", "json").out)
    [cache] = mldiag.folder.glob("cache/mldiagnostics/xprof/*/logs")
    with profiler_process() as profiled:
        options = ["-d", "10ms", "--session", "first", "--log-directory", url, "--open", "--no-diagnosis"]
        ended = mldiag.run("capture", f"127.0.0.1:{profiled.port}", *options)
    assert ended.code == 0, ended.err
    assert (mldiag.folder / "opened").read_text().startswith(server["url"])
    store = open_store(url)
    store.put("plugins/profile/second/host-0.xplane.pb", bytes(2 * 2**20 - 1))
    store.put("plugins/profile/large/host-0.xplane.pb", bytes(2 * 2**20 + 1))
    for _ in range(2):  # as long as it is copied, and once more after it had to make room
        events = answer(server["url"], "first", "trace_viewer")["traceEvents"]
        assert {event.get("name") for event in events} > {"process_name", "thread_name"}
        assert (is_staged(cache, "first"), is_staged(cache, "second")) == (True, False)
        hosts(server["url"], "second", "trace_viewer")
        assert (is_staged(cache, "first"), is_staged(cache, "second")) == (False, True)
    assert names(server["url"]) >= {"first", "second"}
    with pytest.raises(urllib.error.HTTPError, match="507") as refused:
        answer(server["url"], "large", "trace_viewer")
    assert b"make another server with --cache-size" in refused.value.read()
    assert is_staged(cache, "second")
    mldiag.lines("xprof", "delete", server["name"], "--on", "local", "--yes")
    assert not cache.parent.exists()


def is_staged(cache: Path, session: str) -> bool:
    """Return whether the traces of a session are in the directory that XProf shows."""
    return any((cache / "plugins/profile" / session).glob("*.xplane.pb"))


def names(address: str) -> set[str]:
    return set(read(f"{address.rstrip('/')}/data/plugin/profile/runs"))


def answer(address: str, session: str, tool: str) -> Any:
    [host] = hosts(address, session, tool)
    return read(f"{address.rstrip('/')}/data/plugin/profile/data?run={session}&tag={tool}&host={host['hostname']}")


def hosts(address: str, session: str, tool: str) -> Any:
    return read(f"{address.rstrip('/')}/data/plugin/profile/hosts?run={session}&tag={tool}")


def read(url: str) -> Any:
    """Return a decoded answer, which XProf compresses."""
    with urllib.request.urlopen(url, timeout=LIMIT_S) as response:
        body: bytes = response.read()
    return json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)
