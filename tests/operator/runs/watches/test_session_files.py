from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics import layout
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_operator.runs.watches import session_files
from mldiagnostics_operator.runs.watches.session_files import SessionFiles
from mldiagnostics_operator.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

POLICY = Policy.parse(
    '{"defaultStorage": "volume:///", "allowedStorage": {"ml": ["volume:///ml"]}, "strictTenancy": true}'
)
RUN_ID = "a" * 64


def put(root: Path, session: str, *hosts: str) -> None:
    for host in hosts:
        file = root / RUN_ID / layout.trace_key(session, host)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"trace")
        (file.parent / "cache.json").write_text("{}")


async def test_sessions_in_the_storage_of_a_run_are_adopted(tmp_path: Path) -> None:
    put(tmp_path, "a0-s100", "w-0", "w-1")
    put(tmp_path / "ml" / "own", "a0-s200", "w-0")
    storage = Storage(tmp_path)
    try:
        files = SessionFiles(storage, POLICY)
        (default,) = await files.sessions("ml", RUN_ID, None)
        assert (default.id, default.source, default.directory) == ("a0-s100", "Files", f"volume:///{RUN_ID}")
        (own,) = await files.sessions("ml", RUN_ID, "volume:///ml/own")
        assert (own.id, own.directory) == ("a0-s200", f"volume:///ml/own/{RUN_ID}")
        assert await files.sessions("ml", "b" * 64, None) == []
    finally:
        storage.close()


async def test_storage_that_the_namespace_may_not_use_is_not_read(tmp_path: Path) -> None:
    put(tmp_path / "other" / "own", "a0-s200", "w-0")
    storage = Storage(tmp_path)
    try:
        files = SessionFiles(storage, POLICY)
        for location in ("volume:///other/own", "gs://elsewhere/x", "/tmp/pod", "volume:///ml/../other/own", "x"):
            assert await files.sessions("ml", RUN_ID, location) == []
    finally:
        storage.close()


async def test_a_listing_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_files, "MAX_ADOPTED", 3)
    for number in range(6):
        put(tmp_path, f"s{number}", "w-0")
    storage = Storage(tmp_path)
    try:
        assert len(await SessionFiles(storage, POLICY).sessions("ml", RUN_ID, None)) == 3
    finally:
        storage.close()
