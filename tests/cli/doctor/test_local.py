"""The doctor writes into the storage of the runs: a directory, a bucket, and places that cannot be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.store import open_store
from mldiagnostics_cli.doctor.finding import State
from mldiagnostics_cli.doctor.local import check_storage

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_directory_is_written_and_left_as_it_was(tmp_path: Path) -> None:
    finding = check_storage(str(tmp_path), is_given=True)
    assert (finding.state, list(tmp_path.iterdir())) == (State.FINE, [])


def test_a_bucket_is_written_and_left_as_it_was(bucket_url: str) -> None:
    finding = check_storage(bucket_url, is_given=True)
    assert finding.state is State.FINE, finding
    assert list(open_store(bucket_url).list()) == []
    missing = check_storage(f"{bucket_url.partition(':')[0]}://no-such-bucket/runs", is_given=True)
    assert (missing.state, "no-such-bucket" in missing.message, missing.remedy != "") == (State.BROKEN, True, True)


def test_a_place_that_does_not_exist_is_broken_only_if_it_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_storage("mldiagnostics", is_given=False).state is State.UNKNOWN
    assert check_storage("mldiagnostics", is_given=True).state is State.BROKEN
    (tmp_path / "file").write_text("")
    blocked = check_storage("file", is_given=True)
    assert (blocked.state, blocked.remedy != "") == (State.BROKEN, True)
