"""`mldiag runs edit`, of files and of the MLRuns of a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.definitions import install
from support.programs.command_line import CommandLine
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics.store import Store
    from mldiagnostics_kube.client.api_client import ApiClient

RUN_ID = "4f6c" + 60 * "0"


def test_changes_are_shown_by_every_command_and_undone(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc", name="own", tags=["mine"])
    put_run(store, "def", name="other")
    [edited] = mldiag.document("runs", "edit", "own", "--name", "baseline", "--add-tag", "b", "--notes", "first run")
    assert (edited["displayName"], edited["tags"], edited["notes"]) == ("baseline", ["mine", "b"], "first run")
    assert mldiag.document("runs", "get", "baseline")["tags"] == ["mine", "b"]
    assert "tags        mine, b" in mldiag.lines("runs", "get", "abc")
    assert "notes       first run" in mldiag.lines("runs", "get", "abc")
    assert [run["runId"] for run in mldiag.document("runs", "list", "--tag", "b")] == ["abc"]
    mldiag.lines("runs", "edit", "abc", "def", "--add-tag", "both")
    assert len(mldiag.document("runs", "list", "--tag", "both")) == 2
    [edited] = mldiag.document("runs", "edit", "abc", "--remove-tag", "mine", "--remove-tag", "both", "--name", "")
    assert (edited["displayName"], edited["tags"], edited["notes"]) == ("own", ["b"], "first run")
    [edited] = mldiag.document("runs", "edit", "abc", "--reset")
    assert (edited["displayName"], edited["tags"], edited["notes"]) == ("own", ["mine"], None)


def test_words_leave_with_their_run(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc")
    mldiag.lines("runs", "edit", "abc", "--add-tag", "b")
    assert [entry.key for entry in store.list("edits")] == ["edits/abc.json"]
    mldiag.lines("runs", "delete", "abc", "--yes")
    assert list(store.list()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--remove-tag", "b"), "--remove-tag b: run own does not have it; its tags are: mine"),
        (("--add-tag", ""), "--add-tag '': not a tag, or one too many; a tag is a text of 1 to 64 characters"),
        (("--add-tag", "x" * 65), "not a tag, or one too many"),
        (("--name", "n" * 254), "--name: has 254 characters; pass at most 253"),
        (("--notes", "n" * 2001), "--notes: has 2001 characters; pass at most 2000"),
    ],
)
def test_an_invalid_change_is_rejected_and_changes_nothing(
    mldiag: CommandLine, store: Store, options: tuple[str, ...], message: str
) -> None:
    put_run(store, "abc", name="own", tags=["mine"])
    assert message in mldiag.failure("runs", "edit", "abc", *options)
    assert list(store.list("edits")) == []


def test_an_edit_without_a_change_is_a_usage_error(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc")
    assert "no change is given; pass --name, --notes, --add-tag" in mldiag.failure("runs", "edit", "abc", code=64)


@pytest.mark.apiserver
async def test_in_a_cluster_the_spec_of_the_run_has_the_changes(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await install(admin, RUNS)
    config = api_server.kubeconfig.read_text().replace("context:\n", f"context:\n    namespace: {namespace}\n", 1)
    (tmp_path / "kubeconfig").write_text(config)
    mldiag = CommandLine(tmp_path, env={"KUBECONFIG": str(tmp_path / "kubeconfig")})
    path = path_to(*RUNS.gvr, namespace=namespace)
    made = {
        "apiVersion": RUNS.api_version,
        "kind": RUNS.kind,
        "metadata": {"name": "trainer"},
        "spec": {"runId": RUN_ID},
    }
    await admin.create(path, made)
    reported = {
        "displayName": "own",
        "reportedName": "own",
        "reportedTags": ["mine"],
        "reportedNotes": "of the program",
    }
    await admin.patch(f"{path}/trainer/status", {"status": {"runId": RUN_ID, "phase": "Active", **reported}})
    shown = mldiag.document("runs", "get", "trainer")
    assert (shown["displayName"], shown["tags"], shown["notes"]) == ("own", ["mine"], "of the program")
    [edited] = mldiag.document("runs", "edit", "trainer", "--name", "baseline", "--add-tag", "b", "--notes", "")
    assert (edited["displayName"], edited["tags"], edited["notes"]) == ("baseline", ["mine", "b"], None)
    assert (await admin.get(f"{path}/trainer"))["spec"] == {
        "runId": RUN_ID,
        "displayName": "baseline",
        "tags": ["mine", "b"],
        "notes": "",
    }
    assert [run["displayName"] for run in mldiag.document("runs", "list", "--tag", "b")] == ["baseline"]
    [edited] = mldiag.document("runs", "edit", "trainer", "--reset")
    assert (edited["displayName"], edited["tags"], edited["notes"]) == ("own", ["mine"], "of the program")
    assert (await admin.get(f"{path}/trainer"))["spec"] == {"runId": RUN_ID}
