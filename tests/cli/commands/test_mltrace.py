"""`mldiag mltrace` with exports, and with a gcloud that prints entries as the real one does."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path

GCLOUD = """#!{python}
import json, sys
json.dump(sys.argv[1:], open({calls!r}, "w"))
if "--project=closed" in sys.argv:
    sys.exit("ERROR: (gcloud.logging.read) PERMISSION_DENIED: Permission denied for all log views.")
print(open({entries!r}).read())
"""


def entry(pod: str, second: int) -> dict[str, object]:
    labels = {"pod_name": pod, "container_name": "train"}
    return {"timestamp": f"2026-11-21T10:00:0{second}Z", "textPayload": f"from {pod}", "resource": {"labels": labels}}


@pytest.fixture
def mldiag(tmp_path: Path) -> CommandLine:
    """The command line with a gcloud in front of its PATH."""
    (tmp_path / "entries.json").write_text(json.dumps([entry("trainer-w-0-1-x7k2p", 1), entry("other-w-0-0-x7k2p", 2)]))
    program = tmp_path / "bin/gcloud"
    program.parent.mkdir()
    source = GCLOUD.format(
        python=sys.executable, calls=str(tmp_path / "calls.json"), entries=str(tmp_path / "entries.json")
    )
    program.write_text(source)
    program.chmod(0o755)
    return CommandLine(tmp_path, env={"PATH": f"{program.parent}:/usr/bin:/bin"})


def test_the_logs_of_a_job_are_read_by_gcloud(mldiag: CommandLine) -> None:
    flags = (
        "-j",
        "trainer",
        "-p",
        "my-project",
        "-s",
        "2026-11-21T10:00:00.0+00:00",
        "-e",
        "2026-11-21T11:00:00.0+00:00",
    )
    shown = mldiag.run("mltrace", *flags, "-l", "severity>=INFO OR a")
    assert shown.out.splitlines()[1].split()[:4] == ["trainer.html", "1", "1", "2026-11-21T10:00:01.000000Z"], shown
    assert "application/gzip" in (mldiag.folder / "trainer.html").read_text()
    arguments = json.loads((mldiag.folder / "calls.json").read_text())
    assert arguments[:2] + arguments[3:] == ["logging", "read", "--project=my-project", "--order=asc", "--format=json"]
    assert arguments[2].split(" AND ") == [
        'resource.type="k8s_container"',
        'resource.labels.pod_name:"trainer-"',
        'timestamp>="2026-11-21T10:00:00.000000Z"',
        'timestamp<"2026-11-21T11:00:00.000000Z"',
        "(severity>=INFO OR a)",
    ]


def test_an_export_is_read_without_gcloud(mldiag: CommandLine) -> None:
    shown = mldiag.run("mltrace", "-f", "entries.json", "-j", "trainer", "-p", "my-project", "-o", "incident")
    assert shown.out.splitlines()[1].split()[:3] == ["incident.html", "1", "1"], shown
    assert not (mldiag.folder / "calls.json").exists()


def test_a_problem_of_gcloud_is_named_and_no_page_is_made(mldiag: CommandLine) -> None:
    problem = mldiag.failure("mltrace", "-j", "trainer", "-p", "closed")
    assert (
        "logs of project closed: (gcloud.logging.read) PERMISSION_DENIED: Permission denied for all log views"
        in problem
    )
    assert not (mldiag.folder / "trainer.html").exists()
    (mldiag.folder / "bin/gcloud").unlink()
    path = {"PATH": str(mldiag.folder / "bin")}  # a machine may have the real one
    assert "gcloud: not installed here" in mldiag.failure("mltrace", "-j", "trainer", "-p", "closed", env=path)
