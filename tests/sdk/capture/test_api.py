"""The one-line front: addresses in, files and a report out."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mldiagnostics.capture import CaptureReport, Reason, TargetState, capture
from mldiagnostics.errors import ConfigurationError, StoreError
from mldiagnostics.store import open_store
from support.ipv6 import HAS_IPV6
from support.servers.profiler_process import profiler_process
from support.servers.profiler_servers import FakeProfiler

OTHER_ADDRESS = "[::1]" if HAS_IPV6 else "127.0.0.2"


@pytest_asyncio.fixture
async def two() -> AsyncIterator[list[FakeProfiler]]:
    async with FakeProfiler().serving() as one, FakeProfiler().serving(OTHER_ADDRESS) as other:
        yield [one, other]


def addresses(servers: list[FakeProfiler]) -> list[str]:
    return [f"127.0.0.1:{servers[0].port}", f"{OTHER_ADDRESS}:{servers[1].port}"]


async def aside(servers: list[FakeProfiler], storage: Path, **options: object) -> CaptureReport:
    return await asyncio.to_thread(
        lambda: capture(addresses(servers), storage=str(storage), duration_ms=50, **options)  # type: ignore[arg-type]
    )


def requested_starts(servers: list[FakeProfiler]) -> list[int]:
    """Return the starts of all requests; 0 is at once."""
    return [request.opts.start_timestamp_ns for server in servers for request in server.requests]


async def with_enough_lead(servers: list[FakeProfiler], storage: Path, session: str) -> CaptureReport:
    """Capture with a lead in which also a busy machine connects to all hosts."""
    for lead_ms in (500, 5000):
        report = await aside(servers, storage / str(lead_ms), session=session, start_lead_ms=lead_ms)
        if all(requested_starts(servers)):
            return report
        for server in servers:
            server.requests.clear()
    return await aside(servers, storage / "30000", session=session, start_lead_ms=30_000)


async def test_one_line_profiles_two_hosts_at_the_same_time(two: list[FakeProfiler], tmp_path: Path) -> None:
    report = await with_enough_lead(two, tmp_path, "first-look")
    directory = Path(report.directory)
    assert (report.session, directory.parent) == ("first-look", tmp_path)
    assert [outcome.target.port for outcome in report.outcomes] == [server.port for server in two]
    files = {Path(outcome.file or "") for outcome in report.outcomes}
    assert {file.parent for file in files} == {directory / "plugins/profile/first-look"}
    assert all(file.stat().st_size == outcome.bytes for file, outcome in zip(files, report.outcomes, strict=True))
    starts = [outcome.start_ns or 0 for outcome in report.outcomes]
    assert report.skew_ms == abs(starts[0] - starts[1]) / 1e6
    requests = requested_starts(two)
    assert len(set(requests)) == 1
    assert requests[0]


async def test_the_record_has_the_request_and_the_outcomes(two: list[FakeProfiler], tmp_path: Path) -> None:
    report = await aside(two, tmp_path)
    record = json.loads((tmp_path / "plugins/profile" / report.session / "capture.json").read_text())
    assert record["v"] == 1
    assert record["session"] == report.session
    assert record["requested"]["addresses"] == addresses(two)
    assert record["skewMilliseconds"] == report.skew_ms
    for target, outcome in zip(record["targets"], report.outcomes, strict=True):
        assert (target["state"], target["file"], target["sha256"]) == ("Captured", outcome.file, outcome.sha256)
        assert record["plannedStart"] <= target["start"] < target["stop"] < record["deadline"]


async def test_an_existing_session_is_rejected_before_any_host_is_contacted(
    two: list[FakeProfiler], tmp_path: Path
) -> None:
    first = await aside(two, tmp_path, session="again")
    with pytest.raises(ConfigurationError, match="again"):
        await aside(two, tmp_path, session="again")
    assert [len(server.requests) for server in two] == [1, 1]
    assert all(outcome.state is TargetState.CAPTURED for outcome in first.outcomes)


async def test_no_host_is_contacted_if_the_store_cannot_be_written(two: list[FakeProfiler], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        await aside(two, tmp_path / "file")
    assert not two[0].requests


def test_an_invalid_duration_creates_no_session(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="0 ms"):
        capture(["127.0.0.1:1"], storage=str(tmp_path), duration_ms=0, session="mine")
    assert not list(tmp_path.iterdir())


WRONG = {
    "addresses": ({"addresses": 5}, "addresses=5: not a list of strings"),
    "bytes": ({"addresses": b"localhost:9999"}, "not a list of strings"),
    "several in one": ({"addresses": "a:1,b:2"}, "one string with several addresses; pass a list"),
    "duration": ({"duration_ms": "5"}, r"duration_ms='5': not a whole number of milliseconds; write duration_ms=5"),
    "part": ({"duration_ms": 0.5}, "duration_ms=0.5: not a whole number of milliseconds"),
    "flag": ({"duration_ms": True}, "duration_ms=True: not a whole number"),
    "lead": ({"start_lead_ms": None, "deadline_s": "60"}, "deadline_s='60': not a number of seconds above 0"),
    "bytes of a trace": ({"max_trace_bytes": "1G"}, "max_trace_bytes='1G': not a whole number of bytes"),
    "storage": ({"storage": 5}, "storage=5: not a path or URL"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_named_with_an_example(wrong: dict[str, Any], message: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"addresses": ["127.0.0.1:1"], "storage": str(tmp_path), **wrong}
    with pytest.raises(ConfigurationError, match=message):
        capture(arguments.pop("addresses"), **arguments)
    assert not list(tmp_path.iterdir())


async def test_one_address_may_be_a_string(two: list[FakeProfiler], tmp_path: Path) -> None:
    report = await asyncio.to_thread(capture, addresses(two)[0], storage=tmp_path, duration_ms=50.0)  # type: ignore[arg-type]
    assert [(outcome.target.host, outcome.reason) for outcome in report.outcomes] == [("127.0.0.1", Reason.CAPTURED)]


def test_a_slow_store_does_not_use_up_the_lead(tmp_path: Path) -> None:
    storage = tmp_path.joinpath(*"d" * 400)  # takes longer to make than file times are coarse
    report = capture(["127.0.0.1:1"], storage=str(storage), duration_ms=1, start_lead_ms=5000)
    claimed = (storage / "plugins/profile").stat().st_mtime
    record = json.loads((storage / "plugins/profile" / report.session / "capture.json").read_text())
    assert datetime.fromisoformat(record["plannedStart"]).timestamp() >= claimed + 5 - 1e-5


async def test_a_failed_host_is_an_outcome_in_order(two: list[FakeProfiler], tmp_path: Path) -> None:
    report = await asyncio.to_thread(
        capture, ["127.0.0.1:1", addresses(two)[0]], storage=str(tmp_path), duration_ms=50, start_lead_ms=0
    )
    assert [outcome.reason for outcome in report.outcomes] == [Reason.NOTHING_LISTENS, Reason.CAPTURED]
    assert report.skew_ms is None


async def test_traces_of_all_hosts_go_to_a_bucket(two: list[FakeProfiler], bucket_url: str) -> None:
    report = await asyncio.to_thread(capture, addresses(two), storage=bucket_url, duration_ms=50, session="far")
    assert [outcome.state for outcome in report.outcomes] == [TargetState.CAPTURED] * 2
    stored = [entry.key for entry in open_store(bucket_url).list("plugins/profile/far")]
    assert [sum(key.endswith(name) for key in stored) for name in (".xplane.pb", "capture.json")] == [2, 1]


async def test_a_capture_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    with profiler_process() as server:
        report = capture([f"127.0.0.1:{server.port}"], storage=str(tmp_path), duration_ms=50)
    assert [outcome.state for outcome in report.outcomes] == [TargetState.CAPTURED]


def test_the_value_types_do_not_import_grpc() -> None:
    code = "import sys, mldiagnostics.capture; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_hpack_the_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['hpack'] = None; from mldiagnostics.capture import capture"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError" in done.stderr
    assert "pip install './sdk[capture]'" in done.stderr
