"""`mldiag diagnose` over summaries of sessions, and over traces that are not ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.store import open_store
from support.diagnosed_sessions import SLOW_S, STEP_S, put_diagnosed_session
from support.run_files import put_run

if TYPE_CHECKING:
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine


@pytest.fixture
def run(store: Store) -> str:
    put_run(store, "4f6c")
    put_diagnosed_session(store, "4f6c", "slow", hosts=4, slow=2)
    put_diagnosed_session(store, "4f6c", "slower", hosts=4, slow=2, step_s=2 * STEP_S)
    put_diagnosed_session(store, "4f6c", "other", hosts=3, slow=2)
    return "4f6c"


def test_the_slow_host_is_named_with_its_phase_its_cost_and_the_next_step(mldiag: CommandLine, run: str) -> None:
    document = mldiag.document("diagnose", f"{run}/slow")
    assert (document["v"], document["session"], document["hosts"]) == (1, "slow", 4)
    first = document["findings"][0]
    assert (first["code"], [host["name"] for host in first["hosts"]], first["phase"]) == (
        "SlowHost",
        ["host-2"],
        "input",
    )
    assert first["costSeconds"] == pytest.approx(SLOW_S, rel=0.2)
    stored = mldiag.folder / f"mldiagnostics/{run}/plugins/profile/slow/diagnosis.json"
    assert json.loads(stored.read_text()) == document
    page = mldiag.lines("diagnose", f"{run}/slow")
    assert page[0] == "session   slow: 4 hosts, 8 steps of 40 ms"
    assert page[2].startswith("critical  ")
    assert any("SlowHost · costs " in line and "host-2" in line for line in page)
    assert any(line.startswith("          → ") for line in page)


def test_a_session_in_a_bucket_is_diagnosed_like_one_on_disk(mldiag: CommandLine, bucket_url: str) -> None:
    store = open_store(bucket_url)
    put_run(store, "4f6c")
    put_diagnosed_session(store, "4f6c", "slow", hosts=4, slow=2)
    document = mldiag.document("diagnose", f"{bucket_url}/4f6c/slow")
    assert [finding["code"] for finding in document["findings"]] == ["SlowHost"]


def test_two_sessions_are_compared_unless_their_hosts_differ(mldiag: CommandLine, run: str) -> None:
    document = mldiag.document("diagnose", f"{run}/slower", "--against", f"{run}/slow")
    assert document["changeShare"] == pytest.approx(1)
    assert mldiag.lines("diagnose", f"{run}/slower", "--against", f"{run}/slow")[0].startswith("step +100 %")
    message = mldiag.failure("diagnose", f"{run}/other", "--against", f"{run}/slow")
    assert message == "number of hosts: 4 before, 3 after; compare them anyway with --force"
    assert mldiag.lines("diagnose", f"{run}/other", "--against", f"{run}/slow", "--force")
    assert "--force: only with --against" in mldiag.failure("diagnose", run, "--force", code=64)


def test_sessions_of_runs_with_other_configurations_are_compared_on_request(
    mldiag: CommandLine, store: Store, run: str
) -> None:
    put_run(store, run, configs={"user": {"batch": 32}, "software": {"jax": "0.9"}})
    put_run(store, "81aa", configs={"user": {"batch": 64}, "software": {"jax": "0.10"}})
    put_diagnosed_session(store, "81aa", "slow", hosts=4, slow=2)
    commands = ("diagnose", "81aa/slow", "--against", f"{run}/slow")
    assert mldiag.failure(*commands) == "user.batch: 32 before, 64 after; compare them anyway with --force"
    assert mldiag.lines(*commands, "--force")[0].startswith("step ")
    put_run(store, "81aa", configs={"user": {"batch": 32}, "software": {"jax": "0.10"}})
    assert mldiag.lines(*commands)[0].startswith("step ")


def test_a_trace_that_cannot_be_read_leaves_the_findings_about_the_other_hosts(mldiag: CommandLine, run: str) -> None:
    profile = mldiag.folder / f"mldiagnostics/{run}/plugins/profile"
    (profile / "slow/host-9.xplane.pb").write_bytes(b"\xff" * 100)
    findings = mldiag.document("diagnose", f"{run}/slow")["findings"]
    assert findings[0]["code"] == "SlowHost"
    assert [each["code"] for each in findings if "host-9.xplane.pb" in each["message"]] == ["Inconclusive"]
    (profile / "empty").mkdir()
    (profile / "empty/host-0.xplane.pb").touch()
    [empty] = mldiag.document("diagnose", f"{run}/empty")["findings"]
    assert empty["code"] == "Inconclusive"
    assert "host-0.xplane.pb: is empty" in empty["message"]


def test_a_log_directory_stands_for_its_newest_session(mldiag: CommandLine) -> None:
    put_diagnosed_session(open_store(str(mldiag.folder)), "traces", "slow", hosts=4, slow=1)
    findings = mldiag.document("diagnose", str(mldiag.folder / "traces"))["findings"]
    assert findings[0]["hosts"][0]["name"] == "host-1"
    (mldiag.folder / "empty").mkdir()
    assert "has no profile sessions" in mldiag.failure("diagnose", str(mldiag.folder / "empty"))
