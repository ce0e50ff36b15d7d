"""The files of a session, in a real directory and a real bucket: nobody but its owner changes them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import StoreError
from mldiagnostics_api.captures.location import Location
from mldiagnostics_operator.captures.session import Session, SessionTaken
from mldiagnostics_operator.storage import Storage
from support.cluster.builders import connection, parsed
from support.cluster.plans import captured, plan, target
from support.servers.buckets import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["volume", *BUCKETS])
def location(request: pytest.FixtureRequest) -> Location:
    if request.param == "volume":
        return Location.parse("volume:///shared")
    return Location.parse(f"{request.param}://{request.getfixturevalue(BUCKETS[request.param])}/x")


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    opened = Storage(tmp_path)
    yield opened
    opened.close()


def session(storage: Storage, location: Location, *, uid: str) -> Session:
    """Open the one session of these tests as the object with this uid."""
    planned = replace(plan(), targets=(target(0, directory=location),), output=location)
    return Session(storage, parsed(connection("capture", uid=uid, podName="trainer-0")), planned, {})


async def contents(storage: Storage, location: Location) -> dict[str, bytes]:
    directory = storage.directory(location)
    return {entry.key: await directory.read(entry.key) for entry in await directory.list("")}


async def test_only_the_owner_changes_or_deletes_a_session(storage: Storage, location: Location) -> None:
    owner, other = (session(storage, location, uid=uid) for uid in ("uid-of-owner", "uid-of-other"))
    chosen = target(0, directory=location)
    await owner.claim()
    await owner.put(chosen, memoryview(b"trace"))
    before = await contents(storage, location)
    assert len(before) == 2

    await other.drop([chosen])  # its object was deleted before it claimed the session
    for claim in (other.claim(), other.conclude([captured(0)])):
        with pytest.raises(SessionTaken, match="the object with uid uid-of-owner"):
            await claim
    await other.drop([chosen])
    assert await other.stored() is None
    assert await contents(storage, location) == before

    await storage.directory(location).put("plugins/profile/capture-1/another.xplane.pb", b"other")
    assert [outcome.bytes for outcome in await owner.stored() or ()] == [5]
    await storage.directory(location).delete("plugins/profile/capture-1/another.xplane.pb")
    await session(storage, location, uid="uid-of-owner").claim()  # as a process that takes over
    await owner.conclude([captured(0)])
    await owner.drop([chosen])
    assert await contents(storage, location) == {}


@pytest.mark.parametrize("content", [b"", b"not a record", b'{"uid": "uid-of-owner"}', b'{"":0},' * 100_000])
async def test_a_file_that_is_no_record_is_another_writers(
    storage: Storage, location: Location, content: bytes
) -> None:
    key = "plugins/profile/capture-1/capture.json"
    await storage.directory(location).put(key, content)
    mine = session(storage, location, uid="uid-of-owner")
    with pytest.raises(SessionTaken, match="another writer"):
        await mine.claim()
    await mine.drop([target(0, directory=location)])
    assert await contents(storage, location) == {key: content[:4096]}


async def test_errors_of_the_volume_show_no_path_of_the_operator(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "shared").symlink_to("/etc")
    with pytest.raises(StoreError, match=r"^volume:///shared/") as raised:
        await session(storage, Location.parse("volume:///shared"), uid="uid").claim()
    assert str(tmp_path) not in str(raised.value)
    assert "/etc" not in str(raised.value)
