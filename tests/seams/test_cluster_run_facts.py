"""Every surface shows the same facts of a run in a cluster: of its controllers, and of its processes."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from mldiagnostics_api.formats import parse_time
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.reported_parts import step_time_text
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.cluster_histories import ClusterHistory, cluster_histories
from support.cluster.cluster_surfaces import ClusterSurfaces, Shown, facts_of, facts_of_object, surfaces
from support.cluster.definitions import install
from support.cluster.played_run import NAME, NOTES, TAGS, PlayedRun
from support.cluster.run_operator import MovedClock, leading, without_pauses

if TYPE_CHECKING:
    from cluster.envtest import ApiServer

pytestmark = pytest.mark.apiserver

LIMIT_S = 60
HISTORY_S = 240
MOST_EXAMPLES = 125
"""Histories with the profile `fuzz`; each takes four seconds."""
EXAMPLES = max(8, settings().max_examples * MOST_EXAMPLES // 1000)
Document = dict[str, Any]


@settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES < MOST_EXAMPLES,  # the same few in each run; `make agreement` draws others
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(cluster_histories())
@pytest.mark.timeout(1800)
def test_every_surface_of_a_cluster_agrees_on_any_history(
    api_server: ApiServer, s3_bucket: str, history: ClusterHistory
) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        lived = live(history, api_server, f"s3://{s3_bucket}/{uuid4().hex[:8]}", Path(folder), patch)
        asyncio.run(asyncio.wait_for(lived, HISTORY_S))


async def live(
    history: ClusterHistory, api_server: ApiServer, root: str, folder: Path, patch: pytest.MonkeyPatch
) -> None:
    """Let a history happen, and ask all surfaces at its moments."""
    clock = MovedClock()
    without_pauses(patch)
    patch.setattr(time, "time", clock.unix_s)
    patch.setattr(time, "time_ns", lambda: round(clock.unix_s() * 1e9))
    namespace = f"test-{uuid4().hex[:8]}"
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(api_server.kubeconfig.read_text())
    async with AsyncExitStack() as stack:
        cluster = await ApiClient.connect({"KUBECONFIG": str(kubeconfig)})
        stack.push_async_callback(cluster.aclose)
        await install(cluster, RUNS)
        await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": namespace}})
        operator = await stack.enter_async_context(leading(cluster, namespace, folder, root=root, clock=clock))
        played = PlayedRun(operator, history.ranks)
        await played.start()
        places = await stack.enter_async_context(surfaces(cluster, namespace, kubeconfig))
        for number, act in enumerate(history.acts):
            await played.act(act)
            if number in history.looks:
                await assert_agreement(places, played, {"phase": "Active"})
        await played.end(history.outcome)
        await assert_agreement(places, played, end_of(history))
        await assert_accounts(places, played, history)


def end_of(history: ClusterHistory) -> Document:
    """Return the phase and its reason at the end."""
    outcomes = {
        "Completed": ("Completed", "AllJobsCompleted"),
        "unreported completion": ("Completed", "AllJobsCompleted"),
        "deleted": ("Failed", "WorkloadDeleted"),
        "active": ("Active", "Running"),
    }
    phase, reason = outcomes.get(history.outcome, ("Failed", "FailedJobs"))
    return {"phase": phase} | ({"reason": reason} if phase != "Active" else {})


async def assert_agreement(places: ClusterSurfaces, played: PlayedRun, expected: Document) -> None:
    """All places show the same facts, those of the history, once the operator has written them."""
    wanted = expected | {"displayName": NAME, "attempt": played.attempts - 1, "step": played.reported_step}
    wanted |= {"over": played.is_over, "tags": [*TAGS], "notes": NOTES}
    try:
        async with asyncio.timeout(LIMIT_S):
            while problem := difference(await places.read(played.run_id), wanted):  # noqa: ASYNC110 - writes are late
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(problem) from None


def difference(shown: Shown, wanted: Document) -> str:
    """Return the first difference between two places, or to the history; empty without one."""
    rows = {name: facts_of(row) for name, row in shown.rows.items()}
    first = rows["get"]
    rows["object"] = facts_of_object(shown.run, first)
    for name, row in rows.items():
        if row != first:
            differing = [(fact, row[fact], first[fact]) for fact in row if row[fact] != first[fact]]
            return f"{name} differs from get: {differing}"
    seen = first | {"step": first["progress"]["step"], "over": first["completionTime"] is not None}
    if wrong := [(fact, seen[fact], value) for fact, value in wanted.items() if seen[fact] != value]:
        return f"not as in the history: {wrong}"
    if shown.rows["get"]["attempts"] != shown.page["attempts"]:
        return f"attempts: {shown.rows['get']['attempts']}, in the view {shown.page['attempts']}"
    if shown.rows["get"]["ranks"] != shown.page["hosts"]:
        return f"hosts: {shown.rows['get']['ranks']}, in the view {shown.page['hosts']}"
    if (shown.account or {}).get("goodput") != first["goodput"]:
        return f"the bar has {shown.account}, and the row {first['goodput']}"
    return _difference_of_texts(shown, first)


def _difference_of_texts(shown: Shown, row: Document) -> str:
    cells, progress = shown.cells, row["progress"]
    columns = {
        "Display Name": row["displayName"],
        "Phase": row["phase"],
        "Attempt": row["attempt"],
        "Step": progress["step"],
        "Step Time": None if progress["stepTimeSeconds"] is None else step_time_text(progress["stepTimeSeconds"]),
        "Goodput": None if row["goodput"] is None else f"{100 * row['goodput']:.1f}%",
        "Message": row["message"],
    }
    for name, value in columns.items():
        if (cells[name] or None) != (value or None) and not (value == 0 and cells[name] == 0):
            return f"column {name}: {cells[name]!r} instead of {value!r}"
    reporting, _, _ = (cells["Hosts"] or "").partition("/")
    if reporting != str(row["hosts"]["reporting"]):
        return f"column Hosts: {cells['Hosts']} instead of {row['hosts']}"
    phase = f"{row['phase']} ({row['reason']})" if row["reason"] else row["phase"]
    listed, got = shown.texts
    missing = [text for text in (phase, row["displayName"]) if text not in listed or text not in got]
    return f"not in the pages of runs list and get: {missing}" if missing else ""


async def assert_accounts(places: ClusterSurfaces, played: PlayedRun, history: ClusterHistory) -> None:
    """`mldiag goodput` has the account of the status as of its moment, and at the end of a run that ends itself."""
    final, then = await account_at(places, played, ""), None
    try:
        async with asyncio.timeout(LIMIT_S):
            while True:  # the status gets the account of the last events after the phase
                account = (await places.run())["status"]["goodput"]
                if parse_time(account["asOfTime"]) < parse_time(final["startTime"]):
                    continue  # it is of the time before a clock was set, by which all events have moved
                then = await account_at(places, played, account["asOfTime"])
                if _is_account(account, then) and (history.outcome != "Completed" or then == final):
                    break
    except TimeoutError:
        raise AssertionError((account, then, final)) from None
    if history.outcome != "active":
        shown = await places.read(played.run_id)
        assert shown.report is not None
        assert shown.report["cumulative"].items() <= final.items(), "the command adds the keys of before"


def _is_account(account: Document, then: Document) -> bool:
    """Whether the account of a status is the one that `mldiag goodput` prints."""
    ratio = None if then["goodput"] is None else round(then["goodput"], 4)
    return ratio == account.get("ratio") and isclose(then["elapsedSeconds"], account["elapsedSeconds"], rel_tol=1e-6)


async def account_at(places: ClusterSurfaces, played: PlayedRun, moment: str) -> Document:
    """Return the account that `mldiag goodput` prints of the whole run, or as of a moment."""
    [report] = await places.document("goodput", played.run_id, *(("--now", moment) if moment else ()))
    cumulative: Document = report["cumulative"]
    return cumulative
