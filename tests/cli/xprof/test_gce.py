"""Servers of XProf on Compute Engine, by a gcloud that records its arguments and answers as the real one does."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.programs.gcloud import PAGE, calls, open_page, recorded_gcloud

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.programs.command_line import CommandLine

PLACE = "gs://bucket/runs/4f6c,a"
CREATE = ("xprof", "create", PLACE, "--on", "gce", "--zone", "us-east5-a")


@pytest.fixture
def mldiag(mldiag: CommandLine) -> Iterator[CommandLine]:
    """The command line with a gcloud in its path."""
    with recorded_gcloud(mldiag.folder) as env:
        yield type(mldiag)(mldiag.folder, env=env)


def test_a_machine_is_made_once_opened_and_deleted(mldiag: CommandLine) -> None:
    [made] = mldiag.document(*CREATE, "--service-account", "reader@p.iam.gserviceaccount.com")
    assert made == {
        "name": "xprof-4f6c-a",
        "logDirectory": PLACE,
        "on": "gce",
        "state": "Running",
        "url": "",
        "created": 1795341600.0,
        "namespace": "",
        "zone": "us-east5-a",
    }
    assert mldiag.document(*CREATE) == [made], "the first is shown"
    assert mldiag.document("xprof", "list", "--on", "gce") == [made]
    [title, row] = mldiag.lines("xprof", "list", "--on", "gce", "-o", "wide")
    assert dict(zip(title.split(), row.split(), strict=True))["ZONE"] == "us-east5-a"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        assert open_page(mldiag, "xprof", "connect", made["name"], "--on", "gce", ended_by=number) == PAGE
    assert "no terminal to confirm it" in mldiag.failure("xprof", "delete", PLACE, "--on", "gce")
    deleted = mldiag.lines("xprof", "delete", PLACE, "--on", "gce", "--yes")
    assert deleted == ["xprof xprof-4f6c-a deleted"]
    assert mldiag.document("xprof", "list", "--on", "gce") == []

    create, ssh, _, _, delete = (call for call in calls(mldiag.folder) if "list" not in call)
    script = next(each for each in create if each.startswith("--metadata-from-file=startup-script="))
    assert create == [
        *("compute", "instances", "create", "xprof-4f6c-a", "--zone=us-east5-a", "--machine-type=c4-highmem-8"),
        *("--image-family=debian-12", "--image-project=debian-cloud", "--scopes=cloud-platform"),
        *("--tags=default-allow-ssh", "--labels=mldiag-xprof=true", f"--metadata=^::^mldiag-log-directory={PLACE}"),
        *(script, "--service-account=reader@p.iam.gserviceaccount.com", "--format=json", "--quiet"),
    ]
    assert ssh[:3] == ["compute", "ssh", "xprof-4f6c-a"]
    assert ssh[-1].endswith(":localhost:8791")
    assert delete[:5] == ["compute", "instances", "delete", "xprof-4f6c-a", "--zone=us-east5-a"]
    listing = ["compute", "instances", "list", "--filter=labels.mldiag-xprof=true", "--format=json"]
    assert listing in calls(mldiag.folder)
    subprocess.run(["bash", "-n", mldiag.folder / "startup.sh"], check=True)


def test_a_gcloud_that_names_no_new_machine_is_an_error(mldiag: CommandLine) -> None:
    (mldiag.folder / "gcloud").write_text("#!/bin/sh\necho '[]'\n")
    assert mldiag.failure(*CREATE).startswith("xprof-4f6c-a: gcloud names no new machine; see `mldiag xprof list")


def test_failures_of_gcloud_are_one_message(mldiag: CommandLine) -> None:
    nowhere = mldiag.failure("xprof", "create", PLACE, "--on", "gce", "--zone", "nowhere")
    assert nowhere == "xprof-4f6c-a: Invalid zone 'nowhere'; check the zone, the project and `gcloud auth list`"
    assert "--zone: is not given; pass a zone" in mldiag.failure("xprof", "create", PLACE, "--on", "gce", code=64)
    here = mldiag.failure("xprof", "create", "./logs", "--on", "gce", "--zone", "z")
    assert here == "./logs: a virtual machine cannot read it; pass gs://bucket/prefix"
    (mldiag.folder / "gcloud").unlink()
    missing = mldiag.failure("xprof", "list", "--on", "gce", env={"PATH": str(mldiag.folder)})
    assert missing == "gcloud: not installed here; install the Google Cloud CLI"
