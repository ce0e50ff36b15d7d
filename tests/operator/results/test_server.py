"""The server of files, called with the client certificate of an API server."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.results import CONTENT, PART_BYTES, RESULTS_GROUP, RESULTS_VERSION, SIZE_HEADER, VERSION_HEADER
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, RequestRejected, path_to
from mldiagnostics_kube.installation.result_files import VolumeDirectory, copy_directory
from mldiagnostics_operator.results.volume import TooManyFiles, list_files
from support.cluster.result_servers import results_alone
from support.cluster.result_volumes import LAB, OTHER_RUN, RUN, SESSION, TRACE, make_volume, put, wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

FILES = path_to(RESULTS_GROUP, RESULTS_VERSION, "files", namespace="ml")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    return make_volume(tmp_path / "volume", "ml")


@pytest.fixture
async def api_server(volume: Path, tmp_path: Path) -> AsyncIterator[ApiClient]:
    """The server's client."""
    async with results_alone(volume, tmp_path / "pki") as client:
        yield client


async def part(client: ApiClient, directory: str, file: str, **more: str) -> tuple[bytearray, Any]:
    query = [("directory", directory), ("file", file), *more.items()]
    return await client.content(f"{FILES}/{CONTENT}", query=query, max_bytes=PART_BYTES)


async def listed(client: ApiClient, directory: str) -> dict[str, int]:
    raw, _ = await client.content(FILES, query=[("directory", directory)], max_bytes=10**6)
    return {each["file"]: each["bytes"] for each in json.loads(raw)["files"]}


async def test_a_directory_is_copied_as_it_is(api_server: ApiClient, tmp_path: Path) -> None:
    traces = wanted(f"volume:///{SESSION}", "ml", ".xplane.pb", ".json")
    await copy_directory(api_server, traces, tmp_path / "session", cluster=LAB)
    assert (tmp_path / "session/trainer-0.xplane.pb").read_bytes() == TRACE
    assert sorted(path.name for path in (tmp_path / "session").iterdir()) == ["empty.json", "trainer-0.xplane.pb"]
    await copy_directory(api_server, wanted(f"volume:///{RUN}", "ml"), tmp_path / "run", cluster=LAB)
    assert (tmp_path / "run/records/a0-r0-00000000-00001.jsonl").read_bytes() == b"{}\n"
    assert not list((tmp_path / "run").rglob("*.xplane.pb"))
    limited = VolumeDirectory(location=f"volume:///{RUN}", namespace="ml", suffixes=(".json",), most_bytes=10)
    with pytest.raises(ConfigurationError, match="has more than 0 MiB of records"):
        await copy_directory(api_server, limited, tmp_path / "no", cluster=LAB)


CAPTURE = {"object": {"namespace": "ml", "name": "try"}, "requested": {"triggerCapture": {}}, "targets": []}
FOREIGN = {**CAPTURE, "object": {"namespace": "other", "name": "try"}}
CROSSING = {**CAPTURE, "requested": {"triggerCapture": {"podNamespace": "other"}}}
STATE = b'{"v":1,"mark":"m-1","namespace":"%s","runId":"%s","processes":{' + b" " * PART_BYTES


@pytest.mark.parametrize(
    ("files", "directory", "is_readable"),
    [
        ({"run.json": {"runId": RUN, "namespace": "ml"}}, "", True),
        ({"run.json": {"runId": RUN, "namespace": "other"}}, "", False),
        ({"run.json": {"runId": OTHER_RUN, "namespace": "ml"}}, "", False),
        ({"run.json": {"runId": RUN, "namespace": "ml"}}, "/records", False),
        ({"run.json": b"\xff"}, "", False),
        ({}, "", False),
        ({"reported/state.json": STATE % (b"ml", RUN.encode())}, "", True),
        ({"reported/state.json": STATE % (b"other", RUN.encode())}, "", False),
        ({"reported/cluster.json": {"runId": RUN, "namespace": "ml"}}, "/plugins/profile/s", True),
        (
            {
                "run.json": {"runId": RUN, "namespace": "ml"},
                "reported/cluster.json": {"runId": RUN, "namespace": "other"},
            },
            "",
            False,
        ),
        ({"plugins/profile/s/capture.json": CAPTURE}, "/plugins/profile/s", True),
        ({"plugins/profile/s/capture.json": CAPTURE}, "", False),
        ({"plugins/profile/s/capture.json": FOREIGN}, "/plugins/profile/s", False),
        ({"plugins/profile/s/capture.json": CROSSING}, "/plugins/profile/s", False),
        (
            {
                "plugins/profile/s/capture.json": json.dumps(
                    {**CAPTURE, "targets": [{"state": "Captured", "file": "x" * 100}] * 20_000}
                ).encode()
            },
            "/plugins/profile/s",
            True,
        ),
    ],
)
async def test_records_decide_which_namespace_reads_a_directory(
    api_server: ApiClient, volume: Path, files: dict[str, Any], directory: str, is_readable: bool
) -> None:
    for path in (volume / RUN).rglob("*.json"):
        path.unlink()
    (volume / RUN / "plugins/profile/s").mkdir()
    for name, content in files.items():
        put(volume / RUN / name, content)
    location = f"volume:///{RUN}{directory}"
    if is_readable:
        inside = directory.removeprefix("/")
        names = {name.removeprefix(inside).lstrip("/") for name in files if name.startswith(inside)}
        assert set(await listed(api_server, location)) >= names
        return
    with pytest.raises(NotFound, match="not the directory of a run or a profile session of namespace ml"):
        await listed(api_server, location)


@pytest.mark.parametrize(
    ("directory", "file"),
    [
        (f"volume:///{RUN}", f"../{OTHER_RUN}/run.json"),
        (f"volume:///{RUN}", "/etc/passwd"),
        (f"volume:///{RUN}", f"records/../../{OTHER_RUN}/run.json"),
        (f"volume:///{RUN}", "linked/run.json"),
        (f"volume:///{RUN}", "linked.json"),
        (f"volume:///{RUN}", "records"),
        (f"volume:///{RUN}", "pipe.json"),
        (f"volume:///{RUN}", "run.json\0"),
        (f"volume:///{RUN}", ""),
        (f"volume:///{RUN}/linked", "run.json"),
        (f"volume:///{RUN}/../{OTHER_RUN}", "run.json"),
        ("volume:///", f"{RUN}/run.json"),
        ("gs://bucket/runs", "run.json"),
        ("/etc", "passwd"),
        ("", "run.json"),
    ],
)
async def test_no_path_leads_out_of_the_directory(
    api_server: ApiClient, volume: Path, directory: str, file: str
) -> None:
    (volume / RUN / "linked").symlink_to(volume / OTHER_RUN)
    (volume / RUN / "linked.json").symlink_to(volume / OTHER_RUN / "run.json")
    os.mkfifo(volume / RUN / "pipe.json")
    with pytest.raises((NotFound, RequestRejected)):
        await part(api_server, directory, file)
    sizes = await listed(api_server, f"volume:///{RUN}")
    assert not {"linked.json", "pipe.json", "linked/run.json"} & set(sizes)
    assert sizes["plugins/profile/a0-s100/trainer-0.xplane.pb"] == len(TRACE)


async def test_a_file_that_another_one_replaces_is_read_from_its_start(
    api_server: ApiClient, volume: Path, tmp_path: Path
) -> None:
    trace, directory = volume / SESSION / "trainer-0.xplane.pb", f"volume:///{SESSION}"
    first, headers = await part(api_server, directory, trace.name)
    assert (bytes(first), headers[SIZE_HEADER]) == (TRACE[:PART_BYTES], str(len(TRACE)))
    with trace.open("ab") as file:
        file.write(b"more")
    version = headers[VERSION_HEADER]
    second, headers = await part(api_server, directory, trace.name, offset=str(PART_BYTES), version=version)
    assert (bytes(second), headers[VERSION_HEADER]) == (TRACE[PART_BYTES : 2 * PART_BYTES], version)
    trace.with_suffix(".new").write_bytes(b"another one")
    trace.with_suffix(".new").replace(trace)
    with pytest.raises(Conflict):
        await part(api_server, directory, trace.name, offset=str(PART_BYTES), version=version)
    await copy_directory(api_server, wanted(directory, "ml", ".pb"), tmp_path / "copy", cluster=LAB)
    assert (tmp_path / "copy" / trace.name).read_bytes() == b"another one"


class MovingFile:
    """A client of the server; a file gets another name after the list, as a journal gives it one that grows."""

    def __init__(self, client: ApiClient, file: Path) -> None:
        self._client, self._file = client, file

    async def content(self, path: str, **request: Any) -> Any:
        """Send a request; before the first one for content, move the file."""
        if path.endswith(CONTENT) and self._file.exists():
            self._file.rename(self._file.with_name("a0-r0-00000000-00002.jsonl"))
        return await self._client.content(path, **request)


async def test_a_file_that_gets_another_name_meanwhile_is_copied(
    api_server: ApiClient, volume: Path, tmp_path: Path
) -> None:
    client: Any = MovingFile(api_server, volume / RUN / "records/a0-r0-00000000-00001.jsonl")
    await copy_directory(client, wanted(f"volume:///{RUN}", "ml"), tmp_path / "copy", cluster=LAB)
    copied = [path.name for path in (tmp_path / "copy/records").iterdir()]
    assert copied == ["a0-r0-00000000-00002.jsonl"]


async def test_a_namespace_has_a_share_and_the_others_their_own(api_server: ApiClient) -> None:
    """A flood of one namespace is refused in part; a request of another one is answered."""
    other = path_to(RESULTS_GROUP, RESULTS_VERSION, "files", namespace="other")

    async def status(path: str, query: list[tuple[str, str]]) -> int:
        try:
            await api_server.content(path, query=query, max_bytes=PART_BYTES)
        except ClusterError as error:
            return error.status
        return 200

    flood = [("directory", f"volume:///{SESSION}"), ("file", "trainer-0.xplane.pb")]
    one = status(other, [("directory", f"volume:///{OTHER_RUN}")])
    *statuses, answered = await asyncio.gather(*(status(f"{FILES}/{CONTENT}", flood) for _ in range(63)), one)
    assert answered == 200
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) >= 20


async def test_other_paths_and_methods_are_refused(api_server: ApiClient) -> None:
    group = f"/apis/{RESULTS_GROUP}/{RESULTS_VERSION}"
    assert [each["name"] for each in (await api_server.get(group))["resources"]] == ["files"]
    for path in ("/", "/openapi/v2", f"{group}/namespaces/ml/secrets", f"{FILES}/other", f"{FILES}/content/x"):
        with pytest.raises(NotFound, match="no such path"):
            await api_server.get(path)
    with pytest.raises(RequestRejected, match="not allowed here; use GET"):
        await api_server.create(FILES, {})
    with pytest.raises(RequestRejected, match="offset: '-1' is not a number of bytes"):
        await part(api_server, f"volume:///{RUN}", "run.json", offset="-1")


async def test_only_api_servers_are_answered(volume: Path, tmp_path: Path) -> None:
    async with results_alone(volume, tmp_path / "pki", client="scheduler") as client:
        with pytest.raises(RequestRejected, match="client certificate: is not that of an API server"):
            await listed(client, f"volume:///{RUN}")
    async with results_alone(volume, tmp_path / "pki2") as client:
        assert "run.json" in await listed(client, f"volume:///{RUN}")


def test_a_directory_is_visited_only_as_far_as_its_bound(tmp_path: Path) -> None:
    for number in range(8):
        put(tmp_path / f"run/inner-{number % 2}/{number}.tmp", b"")
    with pytest.raises(TooManyFiles):
        list_files(tmp_path, ["run"], lambda name: name.endswith(".json"), most=2)
    assert list_files(tmp_path, ["run"], lambda name: name.endswith(".json"), most=3) == []
    put(tmp_path / "run/inner-0/a.json", b"{}")
    put(tmp_path / "run/b.json", b"")
    expected = [("b.json", 0), ("inner-0/a.json", 2)]
    assert list_files(tmp_path, ["run"], lambda name: name.endswith(".json"), most=3) == expected
    with pytest.raises(TooManyFiles):
        list_files(tmp_path, ["run"], lambda name: name.endswith(".json"), most=1)
