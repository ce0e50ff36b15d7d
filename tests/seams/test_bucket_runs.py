"""A run stored in a bucket of each cloud is read by the command line and the view, and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.store import open_store
from support.programs.command_line import CommandLine
from support.programs.processes import Programs
from support.servers.buckets import client_variables
from support.surfaces import view_of

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from mldiagnostics import machinelearning_run, metrics
with machinelearning_run("far", run_workload_id="far", storage=sys.argv[1], log_system_metrics=False) as run:
    for step in range(20):
        run.step(step)
        metrics.record("loss", 1 / (step + 1), step=step)
"""
TRACE = b"\x0a\x02\x12\x00"


async def test_a_run_in_a_bucket_is_the_same_everywhere(bucket_url: str, tmp_path: Path) -> None:
    url, env = f"{bucket_url}/team", client_variables()
    ended = Programs(tmp_path, env=env).run(PROGRAM, url)
    assert ended.code == 0, ended.err
    assert f"files in {url}/far" in ended.err
    open_store(url).put("far/plugins/profile/one/host-0.xplane.pb", TRACE)

    line = CommandLine(tmp_path, env={"MLDIAG_STORAGE": url})
    (row,) = line.document("runs", "list")
    assert (row["displayName"], row["phase"], row["progress"]["step"]) == ("far", "Completed", 19)
    (account,) = line.document("goodput", f"{url}/far")
    assert account["cumulative"]["lastStep"] == 19
    line.lines("profiles", "download", "far/one", "--to", "copy")
    assert [file.read_bytes() for file in (tmp_path / "copy").rglob("*.xplane.pb")] == [TRACE]

    listed, page, _ = await view_of(url, "far")
    for shown in (listed, page["run"]):
        assert (shown["displayName"], shown["phase"], shown["progress"]["step"]) == ("far", "Completed", 19)

    line.lines("runs", "delete", "far", "--yes")
    assert not list(open_store(url).list())
