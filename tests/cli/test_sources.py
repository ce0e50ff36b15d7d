from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.run_files import put_run

if TYPE_CHECKING:
    from mldiagnostics.store import Store
    from support.command_line import CommandLine


def test_a_run_is_meant_by_its_id_its_name_or_its_directory(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc1", name="first")
    put_run(store, "abc", name="second")
    for meant in ("abc1", "first", "mldiagnostics/abc1", f"{store.url('abc1')}/"):
        assert mldiag.lines("runs", "get", meant, "-o", "name") == ["abc1"]
    assert mldiag.lines("runs", "get", "abc", "-o", "name") == ["abc"]
    assert mldiag.failure("runs", "get", "ab").startswith("ab: 2 runs in mldiagnostics are meant: abc, abc1; give")
    assert "no run in mldiagnostics has this name, or an id that starts so" in mldiag.failure("runs", "get", "x")


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("nowhere", "nowhere: no such directory; give the root of the runs with --storage"),
        ("mldiagnostics/abc", "is the directory of one run; write `mldiag runs get"),
        ("s3://bucket", "'s3://bucket': not a storage location; give a path"),
    ],
)
def test_a_place_that_is_not_a_root_gives_the_remedy(
    mldiag: CommandLine, store: Store, storage: str, message: str
) -> None:
    put_run(store, "abc")
    assert message in mldiag.failure("runs", "list", "--storage", storage)
