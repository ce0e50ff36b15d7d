from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.programs.command_line import CommandLine


def test_a_registered_log_directory_is_a_run(mldiag: CommandLine) -> None:
    line = "-l runs/seven -r us-east5 -m trainer -s sweep -p my-project -v"
    shown = mldiag.lines("xprofiler", "register", *line.split())
    assert shown == ["Registered; to see it: mldiag runs list --storage runs --group sweep"]
    [row] = mldiag.document("runs", "list", "--storage", "runs", "--group", "sweep")
    assert (row["displayName"], row["phase"], row["cluster"]) == (
        "trainer",
        "Completed",
        "projects/my-project/locations/us-east5",
    )
    assert "runs/seven: is a run already" in mldiag.failure("xprofiler", "register", *line.split())
