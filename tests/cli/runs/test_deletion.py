from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.store import open_store
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine


def keys(store: Store) -> list[str]:
    return [entry.key for entry in store.list()]


def put_runs(store: Store) -> None:
    for run in ("abc", "def"):
        put_run(store, run)
        put_records(store, run, "a0-r0-aaaaaaaa-00001")
        store.put(f"{run}/plugins/profile/a0-s5/h0.xplane.pb", b"12345")


def test_runs_are_deleted_with_all_their_files(mldiag: CommandLine, store: Store) -> None:
    put_runs(store)
    assert mldiag.document("runs", "delete", "abc", "--dry-run")[0]["files"] == 3
    assert len(keys(store)) == 6
    assert mldiag.lines("runs", "delete", "abc", "--yes", "-o", "name") == ["abc"]
    assert {key.partition("/")[0] for key in keys(store)} == {"def"}
    assert list(store.folders()) == ["def"]


def test_the_beginning_of_an_id_never_deletes_another_run(mldiag: CommandLine, store: Store) -> None:
    for run, name in (("81aa34cd00", "a"), ("a4f612cd00", "b")):
        put_run(store, run, name=name)
    assert mldiag.lines("runs", "delete", "a", "--yes", "-o", "name") == ["81aa34cd00"]
    assert "no run in mldiagnostics has this name" in mldiag.failure("runs", "delete", "a4f612", "--yes")
    assert "mldiagnostics/a: no such directory" in mldiag.failure("runs", "delete", "mldiagnostics/a", "--yes")
    assert list(store.folders()) == ["a4f612cd00"]
    assert mldiag.lines("runs", "delete", "a4f612cd", "--yes", "-o", "name") == ["a4f612cd00"]


def test_a_run_in_a_bucket_is_deleted(mldiag: CommandLine, gcs_bucket: str) -> None:
    store = open_store(f"gs://{gcs_bucket}/runs")
    put_runs(store)
    assert mldiag.lines("runs", "delete", "-s", store.url(), "abc", "def", "-y", "-o", "name") == ["abc", "def"]
    assert keys(store) == []


def test_a_run_that_is_running_stays(mldiag: CommandLine, store: Store) -> None:
    put_runs(store)
    put_run(store, "abc", name="trainer", phase="Active")
    assert mldiag.failure("runs", "delete", "abc", "def", "--yes").startswith("trainer: is Active; stop its job")
    assert len(keys(store)) == 6
    mldiag.lines("runs", "delete", "abc", "--yes", "--force")
    assert len(keys(store)) == 3


def test_a_deletion_needs_a_confirmation(mldiag: CommandLine, store: Store) -> None:
    put_runs(store)
    assert "no terminal to confirm it; pass --yes" in mldiag.failure("runs", "delete", "abc")
    assert len(keys(store)) == 6


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", 3), (b"n\n", 6), (b"\x04", 6)])
def test_a_terminal_confirms(mldiag: CommandLine, store: Store, answer: bytes, left: int) -> None:
    put_runs(store)
    terminal, end = pty.openpty()
    command = [mldiag.script, "runs", "delete", "abc"]
    process = subprocess.Popen(
        command, cwd=mldiag.folder, env=mldiag.environment(), stdin=end, stdout=end, stderr=end, start_new_session=True
    )
    os.close(end)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(terminal, 4096)
    assert b"Delete name of abc (3 files" in shown
    os.write(terminal, answer)
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert process.wait(60) == (0 if left == 3 else 130)
    assert len(keys(store)) == left
