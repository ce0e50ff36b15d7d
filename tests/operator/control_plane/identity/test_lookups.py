from __future__ import annotations

import asyncio

import pytest
from mldiagnostics_operator.control_plane.identity import lookups
from mldiagnostics_operator.control_plane.identity.lookups import Lookups, Overloaded
from mldiagnostics_operator.control_plane.limits import LOOKUPS_OF_CLIENT, WAITING_LOOKUPS_OF_CLIENT


async def test_a_flood_of_one_client_leaves_turns_for_others() -> None:
    turns, release, inside = Lookups(), asyncio.Event(), list[str]()

    async def look_up(client: str) -> None:
        async with turns.turn(client, "tokenreview"):
            inside.append(client)
            await release.wait()

    flood = [asyncio.create_task(look_up("noisy")) for _ in range(WAITING_LOOKUPS_OF_CLIENT + 10)]
    await asyncio.sleep(0)
    quiet = asyncio.create_task(look_up("quiet"))
    async with asyncio.timeout(60):
        while "quiet" not in inside:  # noqa: ASYNC110 - a few turns of the loop
            await asyncio.sleep(0)
    assert inside.count("noisy") == LOOKUPS_OF_CLIENT
    assert inside.count("quiet") == 1
    release.set()
    results = await asyncio.gather(quiet, *flood, return_exceptions=True)
    assert sum(isinstance(each, Overloaded) for each in results) == 10
    assert inside.count("noisy") == WAITING_LOOKUPS_OF_CLIENT


async def test_a_look_up_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "LOOKUP_S", 0.01)
    with pytest.raises(Overloaded, match="took longer"):
        async with Lookups().turn("client", "owners"):
            await asyncio.Event().wait()
