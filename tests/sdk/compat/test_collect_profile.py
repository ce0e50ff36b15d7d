"""The command of Google's SDK that captures profiles, with an exit status that is true."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.collect_profile import main
from support.ipv6 import needs_ipv6
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

import pytest_asyncio


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeProfiler]:
    async with FakeProfiler().serving() as one:
        yield one


async def status(server: FakeProfiler, place: Path, *more: str, hosts: str = "127.0.0.1") -> int:
    options = ["--hosts", hosts, "--port", str(server.port), "--duration_in_ms", "50", "--log_dir", str(place)]
    return await asyncio.to_thread(main, [*options, *more])


async def test_a_profile_is_at_the_requested_location(
    server: FakeProfiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await status(server, tmp_path, "--session_name", "s1", "--override_hostnames", "pod-0") == 0
    assert (tmp_path / "plugins/profile/s1/pod-0.xplane.pb").stat().st_size
    assert "captured 1 of 1 host" in capsys.readouterr().out
    options = server.requests[0].opts
    assert (options.host_tracer_level, options.device_tracer_level, options.python_tracer_level) == (2, 1, 1)
    assert options.duration_ms == 50


async def test_a_file_may_have_the_name_of_this_machine(
    server: FakeProfiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "this-pod")
    assert await status(server, tmp_path, "--use_system_hostname", "--session_name", "s1") == 0
    assert [file.name for file in (tmp_path / "plugins/profile/s1").glob("*.pb")] == ["this-pod.xplane.pb"]


@needs_ipv6
async def test_a_host_that_is_not_captured_is_a_failure(
    server: FakeProfiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await status(server, tmp_path, hosts="127.0.0.1,::1") == 1
    output = capsys.readouterr().out
    assert f"[::1]:{server.port}: Failed NothingListens" in output
    assert "captured 1 of 2 hosts" in output


WRONG = {
    "too few names": ["--override_hostnames", "a,b"],
    "a name with a colon": ["--override_hostnames", "a:b"],
    "no duration": ["--duration_in_ms", "0"],
}


@pytest.mark.parametrize("more", WRONG.values(), ids=WRONG)
async def test_an_invalid_argument_contacts_no_host(server: FakeProfiler, tmp_path: Path, more: list[str]) -> None:
    assert await status(server, tmp_path, *more) == 2
    assert not server.requests
    assert not list(os.scandir(tmp_path))
