from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.command_line import CommandLine
from support.run_files import put_run

if TYPE_CHECKING:
    from mldiagnostics.store import Store


def test_a_run_is_meant_by_its_id_its_name_or_its_directory(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc1", name="first")
    put_run(store, "abc", name="second")
    for meant in ("abc1", "first", "mldiagnostics/abc1", f"{store.url('abc1')}/"):
        assert mldiag.lines("runs", "get", meant, "-o", "name") == ["abc1"]
    assert mldiag.lines("runs", "get", "abc", "-o", "name") == ["abc"]
    assert mldiag.failure("runs", "get", "ab").startswith("ab: 2 runs in mldiagnostics are meant: abc, abc1; pass")
    assert "no run in mldiagnostics has this name, or an id that starts so" in mldiag.failure("runs", "get", "x")


@pytest.mark.parametrize("command", [("runs", "get"), ("runs", "watch"), ("runs", "compare", "b"), ("goodput",)])
def test_a_name_that_begins_another_id_is_rejected_with_both_listed(
    mldiag: CommandLine, store: Store, command: tuple[str, ...]
) -> None:
    put_run(store, "81aa", name="a")
    put_run(store, "a4f6", name="b")
    message = mldiag.failure(*command, "a")
    assert message == "a: 2 runs in mldiagnostics are meant: 81aa, a4f6; pass the id of one"
    assert mldiag.lines("runs", "get", "b", "-o", "name") == ["a4f6"]


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("nowhere", "nowhere: no such directory; pass the root of the runs with --storage"),
        ("mldiagnostics/abc", "is the directory of one run; write `mldiag runs get"),
        ("ftp://bucket", "'ftp://bucket': not a storage location; pass a path"),
    ],
)
def test_a_place_that_is_not_a_root_gives_the_remedy(
    mldiag: CommandLine, store: Store, storage: str, message: str
) -> None:
    put_run(store, "abc")
    assert message in mldiag.failure("runs", "list", "--storage", storage)


@pytest.mark.parametrize("reference", [".", "./", "../abc", "records/.."])
def test_a_run_is_meant_by_a_path_from_its_own_directory(mldiag: CommandLine, store: Store, reference: str) -> None:
    put_run(store, "abc")
    inside = CommandLine(mldiag.folder / "mldiagnostics/abc")
    (inside.folder / "records").mkdir()
    assert inside.lines("runs", "get", reference, "-o", "name") == ["abc"]
