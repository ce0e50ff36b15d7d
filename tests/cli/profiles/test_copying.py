"""Sessions in directories, runs and a bucket: listed, copied, adopted, pruned and deleted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mldiagnostics.errors import StoreError
from mldiagnostics.runs import RunRow, SessionRow, sessions
from mldiagnostics.store import open_store
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.commands.source_options import SourceChoice
from mldiagnostics_cli.profiles.listing import show_sessions
from mldiagnostics_cli.runs import file_runs
from support.diagnosed_sessions import put_diagnosed_session
from support.run_files import put_run

if TYPE_CHECKING:
    import pytest
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine


def put_session(store: Store, directory: str, *hosts: str, content: bytes = b"trace") -> None:
    """Write a session; `directory` is the log directory and the session, joined by a slash."""
    root, _, session = directory.rpartition("/")
    for host in hosts:
        store.put(f"{root}/plugins/profile/{session}/{host}.xplane.pb".lstrip("/"), content, replace=True)


def test_sessions_of_all_runs_and_of_one_are_listed(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "aaa", name="first")
    put_run(store, "bbb")
    put_session(store, "aaa/a0-s100", "host-0", "host-1")
    put_session(store, "bbb/slow", "host-0")
    store.put("bbb/plugins/profile/slow/capture.json", json.dumps({"targets": [{"state": "Captured"}]}).encode())
    store.put("bbb/plugins/profile/slow/ALL_HOSTS.op_stats_v2.pb", b"a cache of XProf")
    rows = {row["session"]: row for row in mldiag.document("profiles", "list")}
    assert rows["a0-s100"]["hosts"] == ["host-0", "host-1"]
    assert (rows["slow"]["kind"], rows["slow"]["targets"]) == ("capture", {"Captured": 1})
    [first] = mldiag.lines("profiles", "list", "first", "-o", "name")
    assert first.endswith("/aaa/plugins/profile/a0-s100")
    [_, shown] = mldiag.lines("profiles", "list", "mldiagnostics/bbb", "-o", "wide")
    assert "1 Captured" in shown
    assert mldiag.lines("profiles", "get", f"{first}/", "-o", "name") == [first]


def test_a_session_is_deleted_whole_and_nothing_else(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "aaa")
    for session in ("one", "two"):
        put_session(store, f"aaa/{session}", "host-0")
        store.put(f"aaa/plugins/profile/{session}/capture.json", b"{}")
        store.put(f"aaa/plugins/profile/{session}/host-0.trace_events.db", b"a cache")
    assert "two" in mldiag.lines("profiles", "delete", "aaa/two", "--dry-run")[1]
    assert "no terminal to confirm it; pass --yes" in mldiag.failure("profiles", "delete", "aaa/two")
    mldiag.lines("profiles", "delete", "aaa/two", "--yes")
    kept = [
        "aaa/plugins/profile/one/" + name for name in ("capture.json", "host-0.trace_events.db", "host-0.xplane.pb")
    ]
    assert [entry.key for entry in store.list()] == [*kept, "aaa/run.json"]
    assert "aaa/two: has no session 'two'; its sessions are: one" in mldiag.failure("profiles", "delete", "aaa/two")


def test_pruning_keeps_the_newest_of_each_source(mldiag: CommandLine, store: Store) -> None:
    for run in ("aaa", "bbb"):
        put_run(store, run)
        for number in range(3):
            put_session(store, f"{run}/s{number}", "host-0")
    assert len(mldiag.document("profiles", "prune", "aaa", "bbb", "--keep", "1", "--yes")) == 4
    assert mldiag.document("profiles", "prune", "aaa", "--older-than", "1d", "--dry-run") == []
    assert [row["session"] for row in mldiag.document("profiles", "list")] == ["s2", "s2"]
    assert "neither --keep nor --older-than is given" in mldiag.failure("profiles", "prune", "aaa")


def test_a_bucket_is_downloaded_and_a_second_time_kept(mldiag: CommandLine, gcs_bucket: str) -> None:
    bucket = f"gs://{gcs_bucket}/logs"
    put_session(open_store(bucket), "slow", "host-0", "host-1", content=b"x" * 3_000_000)
    open_store(bucket).put("plugins/profile/slow/cache.db", b"a cache of XProf")
    for _ in range(2):
        [copied] = mldiag.document("profiles", "download", f"{bucket}/slow", "--to", "here")
        assert copied["bytes"] == 6_000_000
    files = sorted(path.name for path in (mldiag.folder / "here/plugins/profile/slow").iterdir())
    assert files == ["host-0.xplane.pb", "host-1.xplane.pb"]
    (mldiag.folder / "here/plugins/profile/slow/host-0.xplane.pb").write_bytes(b"other")
    assert "here/plugins/profile/slow/host-0.xplane.pb" in mldiag.failure(
        "profiles", "download", bucket, "--to", "here"
    )


def test_a_pulse_is_downloaded_with_the_summaries_of_all_hosts(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "aaa")
    put_diagnosed_session(store, "aaa", "pulse", hosts=3, slow=1)
    store.delete("aaa/plugins/profile/pulse/host-2.xplane.pb")
    hosts = [{"pod": f"host-{n}", "state": "Captured", "file": f"x/host-{n}.xplane.pb"} for n in range(3)]
    store.put("aaa/plugins/profile/pulse/capture.json", json.dumps({"targets": hosts}).encode())
    for _ in range(2):
        [copied] = mldiag.document("profiles", "download", "aaa/pulse", "--to", "here")
        assert copied["files"] == 7
        diagnosis = mldiag.document("diagnose", "here/pulse")  # it writes another diagnosis.json there
        assert (diagnosis["hosts"], [each["code"] for each in diagnosis["findings"]]) == (3, ["SlowHost"])
    [adopted] = mldiag.document("profiles", "adopt", "here", "--run", "aaa", "--session", "again")
    files = [entry.key.rpartition("/")[2] for entry in store.list("aaa/plugins/profile/again")]
    assert ("diagnosis.json" in files, len(files), adopted["files"]) == (False, 6, 6)


def test_sessions_of_other_tools_join_a_run_under_a_free_name(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "aaa")
    other = open_store(str(mldiag.folder / "tensorboard"))
    put_session(other, "2026_11_21", "host-0")
    put_session(store, "aaa/2026_11_21", "host-0", content=b"another trace")
    trace = "tensorboard/plugins/profile/2026_11_21/host-0.xplane.pb"
    adopted = [
        *mldiag.document("profiles", "adopt", "tensorboard", "--run", "aaa"),
        *mldiag.document("profiles", "adopt", "tensorboard", "--run", "aaa"),  # again: the same
        *mldiag.document("profiles", "adopt", "tensorboard/plugins/profile/2026_11_21", "--run", "aaa"),
        *mldiag.document("profiles", "adopt", trace, "--run", "aaa", "--session", "slow step"),
    ]
    assert [each["session"] for each in adopted[:3]] == ["2026_11_21-2"] * 3
    assert adopted[3]["session"].startswith("slow-step-")
    assert {row["session"] for row in mldiag.document("profiles", "list", "aaa")} == {
        "2026_11_21",
        "2026_11_21-2",
        adopted[3]["session"],
    }
    assert "mldiagnostics: has no traces" in mldiag.failure("profiles", "adopt", "mldiagnostics", "--run", "aaa")
    (mldiag.folder / "notes.txt").write_text("text")
    assert "notes.txt: not a trace" in mldiag.failure("profiles", "adopt", "notes.txt", "--run", "aaa")


def test_a_run_whose_sessions_cannot_be_listed_hides_no_others(
    mldiag: CommandLine, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_run(store, "aaa")
    put_run(store, "bbb", name="broken")
    put_session(store, "aaa/slow", "host-0")
    put_session(store, "bbb/slow", "host-0")

    def listed(run: RunRow) -> list[SessionRow]:
        if run.run_id == "bbb":
            raise StoreError("bbb/plugins: cannot be listed; check its rights")
        return sessions(run)

    monkeypatch.setattr(file_runs, "sessions", listed)
    show_sessions(SourceChoice(storage=str(mldiag.folder / "mldiagnostics")), (), OutputFormat.NAME)
    shown = capsys.readouterr()
    assert shown.out.endswith("/aaa/plugins/profile/slow\n")
    assert shown.err == "broken: its sessions are left out: bbb/plugins: cannot be listed; check its rights\n"
