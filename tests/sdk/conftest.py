"""The storage emulator, shared by the tests of the SDK."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from support.servers.emulator import running_emulator
from support.servers.emulator_faults import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.emulator import Emulator
    from support.servers.emulator_faults import FaultyProxy

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def own_spool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give each test a spool of its own."""
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))


@pytest.fixture(scope="session")
def gcs_emulator() -> Iterator[Emulator]:
    """One emulator for all tests, which keep to buckets of their own."""
    with running_emulator() as emulator:
        yield emulator


@pytest.fixture
def gcs_bucket(gcs_emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an empty bucket of the emulator, which Google's client uses."""
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_emulator.url)
    name = f"bucket-{next(_numbers)}"
    gcs_emulator.make_bucket(name)
    return name


@pytest.fixture
def gcs_faults(gcs_emulator: Emulator, gcs_bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """A proxy that injects faults between Google's client and the emulator."""
    assert gcs_bucket
    with faulty_proxy(gcs_emulator) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        yield proxy
