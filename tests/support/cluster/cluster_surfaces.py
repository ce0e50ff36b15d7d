"""All places that show a run of a cluster, as a user reads them."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from click.testing import CliRunner
from mldiagnostics_api.resources import RUNS
from mldiagnostics_cli.program import program
from mldiagnostics_kube.client.apiserver import TABLE, path_to
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

Document = dict[str, Any]

FACTS: Final = (
    *(
        "displayName",
        "tags",
        "notes",
        "phase",
        "reason",
        "message",
        "attempt",
        "hosts",
        "progress",
        "goodput",
        "goodputAsOfTime",
    ),
    *("completionTime", "lastHeartbeatTime", "independent", "storageLocation", "directory"),
)
_ASSETS: Final = {"index.html": Body(b"<!doctype html>", "text/html")}


@dataclass(frozen=True)
class Shown:
    """Everything that all places show of a run at one moment."""

    run: Document
    """The MLRun."""
    cells: Document
    """The columns of `kubectl get mlruns -o wide`, by name."""
    rows: dict[str, Document]
    """The row of the run by the place that shows it."""
    page: Document
    """The document of its page in the view."""
    account: Document | None
    """The account of its bar in the list of the view."""
    report: Document | None
    """Its report of goodput in the view."""
    texts: tuple[str, str]
    """The output of `runs list` and `runs get`."""


@dataclass(frozen=True)
class ClusterSurfaces:
    """Reads all places that show the only run of a namespace."""

    cluster: ApiClient
    namespace: str
    kubeconfig: Path
    view: aiohttp.ClientSession

    async def read(self, run_id: str) -> Shown:
        """Read all places, one after the other."""
        listed, page, account, report = await self._of_view()
        rows = {
            "list": (await self.document("runs", "list"))[0],
            "get": await self.document("runs", "get", run_id, "--hosts"),
            "compare": (await self.document("runs", "compare", run_id, run_id))["runs"][1],
        }
        if page["run"]["completionTime"]:
            rows["watch"] = await self.document("runs", "watch", run_id)
        return Shown(
            await self.run(),
            await self._cells(),
            rows | {"view list": listed, "view page": page["run"]},
            page,
            account,
            report,
            (await self.text("runs", "list"), await self.text("runs", "get", run_id)),
        )

    async def run(self) -> Document:
        """Return the MLRun."""
        [run] = await self.cluster.items(path_to(*RUNS.gvr, namespace=self.namespace), dict)
        return run

    async def document(self, *arguments: str) -> Any:
        """Return what a command prints with `-o json`."""
        return json.loads(await self.text(*arguments, "-o", "json"))

    async def text(self, *arguments: str) -> str:
        """Return what a command prints."""
        return await asyncio.to_thread(self._print, arguments)

    def _print(self, arguments: tuple[str, ...]) -> str:
        folder = str(self.kubeconfig.parent / "logs")
        env = {"KUBECONFIG": str(self.kubeconfig), "ML_GOODPUT_CACHE_DIR": folder, "COLUMNS": "250"}
        result = CliRunner().invoke(program, [*arguments, "-n", self.namespace], env=env)
        assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exception)
        assert result.stdout, (arguments, result.stderr)
        return result.stdout

    async def _cells(self) -> Document:
        path = path_to(*RUNS.gvr, namespace=self.namespace)
        table = await self.cluster.request("GET", path, accept=TABLE)
        names = [column["name"] for column in table["columnDefinitions"]]
        [row] = table["rows"]
        return dict(zip(names, row["cells"], strict=True))

    async def _of_view(self) -> tuple[Document, Document, Document | None, Document | None]:
        """Return the row in the list, the page, the account of the bar, and the report."""
        [listed] = (await self._view("/api/runs"))["runs"]
        base = f"/api/runs/{listed['source']}/{listed['key']}"
        name = f"{listed['source']}/{listed['key']}"
        accounts = (await self._view("/api/goodput", run=name))["runs"]
        return listed, await self._view(base), accounts[name], (await self._view(f"{base}/goodput"))["report"]

    async def _view(self, path: str, **query: str) -> Document:
        async with self.view.get(path, params=query) as response:
            document: Document = json.loads(await response.text())
            assert response.status == 200, (path, document)
            return document


@asynccontextmanager
async def surfaces(cluster: ApiClient, namespace: str, kubeconfig: Path) -> AsyncIterator[ClusterSurfaces]:
    """Serve the view of a namespace while the block runs."""
    place = ClusterOptions(kubeconfig=str(kubeconfig), namespace=namespace)
    async with serving(Settings(cluster=place, port=0), _ASSETS) as url, aiohttp.ClientSession(url) as view:
        yield ClusterSurfaces(cluster, namespace, kubeconfig, view)


def facts_of(row: Document) -> Document:
    """Return the facts of a row that no place may show otherwise."""
    return {name: row[name] for name in FACTS}


def facts_of_object(run: Document, shown: Document) -> Document:
    """Return the same facts as the object has them; those that it lacks as they are shown."""
    status, progress, goodput = (part or {} for part in _parts(run))
    return {
        **facts_of(shown),
        "displayName": status.get("displayName"),
        "tags": status.get("reportedTags"),
        "notes": status.get("reportedNotes"),
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "message": status.get("message"),
        "attempt": status.get("attempt"),
        "hosts": {"reporting": status.get("hosts", {}).get("reporting")},
        "progress": {"step": progress.get("step"), "stepTimeSeconds": progress.get("stepTimeSeconds")},
        "goodput": goodput.get("ratio"),
        "goodputAsOfTime": _time(goodput.get("asOfTime")),
        "completionTime": _time(status.get("completionTime")),
        "lastHeartbeatTime": _time(status.get("lastHeartbeatTime")),
        "storageLocation": status.get("storageLocation"),
    }


def _parts(run: Document) -> tuple[Document, Document | None, Document | None]:
    status = run.get("status", {})
    return status, status.get("progress"), status.get("goodput")


def _time(text: str | None) -> str | None:
    return None if text is None else datetime.fromisoformat(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
