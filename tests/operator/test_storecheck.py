"""The storage check of `helm test`, run as a process as in its pod."""

import subprocess
import sys
from pathlib import Path

import pytest
from mldiagnostics.store import open_store
from support.servers.buckets import client_variables
from support.servers.object_servers import restricted_s3_user, running_moto
from support.suite.isolation import of_programs

COMMAND = (sys.executable, "-m", "mldiagnostics_operator.storecheck")


def run(policy: str, folder: Path, volume: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "policy.json").write_text(policy)
    environ = {
        **of_programs(),
        "MLDIAG_POLICY_FILE": str(folder / "policy.json"),
        "MLDIAG_VOLUME_ROOT": str(volume),
        # Requests for buckets of no fixture go to a closed port, without credentials.
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1",
        **client_variables(),
        **variables,
    }
    return subprocess.run(COMMAND, env=environ, capture_output=True, text=True, check=False, timeout=120)


def test_the_check_writes_reads_and_deletes_an_object(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    done = run('{"defaultStorage": "volume:///"}', tmp_path, volume)
    assert done.returncode == 0, done.stderr
    assert "volume:///mldiagnostics-store-check-" in done.stdout
    assert list(volume.iterdir()) == []


def test_a_bucket_is_checked_by_an_object_that_is_deleted(bucket_url: str, tmp_path: Path) -> None:
    done = run(f'{{"defaultStorage": "{bucket_url}"}}', tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{bucket_url}/mldiagnostics-store-check-" in done.stdout
    assert list(open_store(bucket_url).list()) == []


@pytest.mark.peers
def test_a_missing_right_to_list_is_named(tmp_path: Path) -> None:
    with running_moto() as server:
        server.make_bucket("profiles")
        user = restricted_s3_user(server.url, ["s3:PutObject", "s3:GetObject", "s3:DeleteObject"])
        done = run('{"defaultStorage": "s3://profiles"}', tmp_path, tmp_path, **server.environment() | user)
    assert done.returncode == 1
    assert "s3:ListBucket" in done.stderr


def test_a_volume_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = run('{"defaultStorage": "volume:///profiles"}', tmp_path, Path("/proc"))
    assert done.returncode == 1
    assert "The default storage does not work" in done.stderr
    assert "volume:///profiles" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreachable_bucket_is_named_in_time(tmp_path: Path) -> None:
    done = run('{"defaultStorage": "gs://nobodys-bucket/profiles"}', tmp_path, tmp_path)
    assert done.returncode == 1
    assert "The default storage does not work" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_default_storage_the_check_passes(tmp_path: Path) -> None:
    done = run('{"defaultStorage": ""}', tmp_path, tmp_path)
    assert done.returncode == 0
    assert "no default storage" in done.stdout


def test_an_invalid_policy_fails_the_check(tmp_path: Path) -> None:
    done = run('{"defaultStorage": "ftp://bucket"}', tmp_path, tmp_path)
    assert done.returncode == 1
    assert "ftp" in done.stderr
    assert "Traceback" not in done.stderr
