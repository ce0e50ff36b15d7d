"""The port of the server beside programs that listen already."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import aiohttp
import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import VIEW_PORT, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}


@pytest.fixture
def hold() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listener(hold: ExitStack, port: int) -> int:
    """Listen on a port and return its number."""
    return int(hold.enter_context(socket.create_server(("127.0.0.1", port))).getsockname()[1])


async def test_the_default_port_gives_way_to_the_next_free_one(tmp_path: Path, hold: ExitStack) -> None:
    for port in (VIEW_PORT, VIEW_PORT + 1):
        with suppress(OSError):  # another program has it, which is the same
            listener(hold, port)
    settings = Settings(roots=(str(tmp_path),))
    async with (
        serving(settings, ASSETS) as first,
        serving(settings, ASSETS) as second,
        aiohttp.ClientSession() as client,
    ):
        ports = [int(url.rpartition(":")[2].strip("/")) for url in (first, second)]
        assert VIEW_PORT + 1 < ports[0] < ports[1]
        async with client.get(first) as response:
            assert response.status == 200


async def test_a_port_that_is_given_and_in_use_is_an_error(tmp_path: Path, hold: ExitStack) -> None:
    port = listener(hold, 0)
    with pytest.raises(ConfigurationError, match=f"^--port: {port}: address already in use; pass another port, or 0"):
        async with serving(Settings(roots=(str(tmp_path),), port=port), ASSETS):
            pass
