"""The doctor writes into the storage of the runs: a directory, a bucket, and places that cannot be written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.store import open_store
from mldiagnostics_cli.doctor.finding import State
from mldiagnostics_cli.doctor.local import check_storage
from support.servers.object_servers import restricted_s3_user, running_moto, shared_access_signature

if TYPE_CHECKING:
    from pathlib import Path

RIGHTS_OF_S3 = ("s3:ListBucket", "s3:PutObject", "s3:GetObject", "s3:DeleteObject")


def test_a_directory_is_written_and_left_as_it_was(tmp_path: Path) -> None:
    finding = check_storage(str(tmp_path), is_given=True)
    assert (finding.state, list(tmp_path.iterdir())) == (State.FINE, [])


def test_a_bucket_is_written_and_left_as_it_was(bucket_url: str) -> None:
    finding = check_storage(bucket_url, is_given=True)
    assert finding.state is State.FINE, finding
    assert list(open_store(bucket_url).list()) == []
    missing = check_storage(f"{bucket_url.partition(':')[0]}://no-such-bucket/runs", is_given=True)
    assert (missing.state, "no-such-bucket" in missing.message, missing.remedy != "") == (State.BROKEN, True, True)


@pytest.mark.parametrize(("permissions", "right"), [("rcwd", "l"), ("rlc", "d"), ("lcwd", "r"), ("rld", "c and w")])
def test_the_right_that_is_missing_in_a_container_is_named(
    permissions: str, right: str, azure_container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expiry = datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", shared_access_signature(azure_container, permissions, expiry))
    finding = check_storage(f"az://{azure_container}/runs", is_given=True)
    assert finding.state is State.BROKEN
    assert re.search(rf"a signature with the permissions? {right}$", finding.remedy), finding


@pytest.mark.peers
@pytest.mark.parametrize("missing", RIGHTS_OF_S3)
def test_the_right_that_is_missing_in_s3_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_moto() as server:
        server.make_bucket("profiles")
        user = restricted_s3_user(server.url, [right for right in RIGHTS_OF_S3 if right != missing])
        for name, value in (server.environment() | user).items():
            monkeypatch.setenv(name, value)
        finding = check_storage("s3://profiles/runs", is_given=True)
    assert finding.state is State.BROKEN
    assert finding.remedy.startswith(f"grant this identity {missing} on the "), finding


def test_a_place_that_does_not_exist_is_broken_only_if_it_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_storage("mldiagnostics", is_given=False).state is State.UNKNOWN
    assert check_storage("mldiagnostics", is_given=True).state is State.BROKEN
    (tmp_path / "file").write_text("")
    blocked = check_storage("file", is_given=True)
    assert (blocked.state, blocked.remedy != "") == (State.BROKEN, True)
