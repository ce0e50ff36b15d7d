"""Faults of the storage emulator, and a spool of its own for each test of the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.servers.buckets import BUCKETS
from support.servers.emulator_faults import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.emulator import Emulator
    from support.servers.emulator_faults import FaultyProxy


@pytest.fixture(autouse=True)
def own_spool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give each test a spool of its own."""
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))


@pytest.fixture(params=["local", *BUCKETS])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "local":
        return str(tmp_path / "store")
    return f"{request.param}://{request.getfixturevalue(BUCKETS[request.param])}/some/prefix"


@pytest.fixture
def gcs_faults(gcs_emulator: Emulator, gcs_bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """A proxy that injects faults between Google's client and the emulator."""
    assert gcs_bucket
    with faulty_proxy(gcs_emulator) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        yield proxy
