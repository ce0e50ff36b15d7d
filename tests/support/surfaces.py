"""All places that show a run from files, as a user reads them."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import aiohttp
from click.testing import CliRunner
from mldiagnostics_cli.program import program
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

Document = dict[str, Any]

FACTS = ("phase", "reason", "message", "attempt", "hosts", "progress", "completionTime", "lastHeartbeatTime", "drops")
_ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}


def facts_of(row: Document) -> Document:
    """Return the facts of a row that no surface may show otherwise."""
    return {name: row[name] for name in FACTS}


def document_of(storage: Path, *arguments: str) -> Any:
    """Return what a command prints with `-o json`."""
    return json.loads(text_of(storage, *arguments, "-o", "json"))


def text_of(storage: Path, *arguments: str) -> str:
    """Return what a command prints."""
    result = CliRunner().invoke(program, [*arguments, "--storage", str(storage)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout


def figures_of(page: str) -> dict[str, str]:
    """Return the large figures of a page about goodput, by name."""
    return {name: unescape(text) for text, name in re.findall(r"<b>([^<]*)</b>([a-z ]+)", page)}


async def view_of(storage: Path | str, run: str) -> tuple[Document, Document, Document]:
    """Return the row of a run in the list of the view, its page, and its report of goodput."""
    settings = Settings(roots=(str(storage),), port=0)
    async with serving(settings, _ASSETS) as url, aiohttp.ClientSession(url) as client:

        async def document(path: str) -> Document:
            async with client.get(path) as response:
                read: Document = json.loads(await response.text())
                return read

        listed = {each["key"]: each for each in (await document("/api/runs"))["runs"]}[run]
        base = f"/api/runs/{listed['source']}/{run}"
        return listed, await document(base), await document(f"{base}/goodput")


async def surfaces_of(storage: Path, run: str) -> tuple[dict[str, Document], dict[str, float | None]]:
    """Return the row of a run, and its goodput, by the name of the surface that shows it."""
    listed, page, report = await view_of(storage, run)
    got = document_of(storage, "runs", "get", run, "--hosts")
    rows = {
        "list": next(row for row in document_of(storage, "runs", "list") if row["runId"] == run),
        "get": got,
        "compare": document_of(storage, "runs", "compare", run, run)["runs"][0],
        "view list": listed,
        "view page": page["run"],
    }
    if got["completionTime"]:
        rows["watch"] = document_of(storage, "runs", "watch", run)
    assert got["attempts"] == page["attempts"]
    assert got["ranks"] == page["hosts"]
    shares = {name: row["goodput"] for name, row in rows.items() if name != "view list"}
    shares["view report"] = report["report"] and report["report"]["cumulative"]["goodput"]
    if report["report"]:
        shares["goodput"] = document_of(storage, "goodput", run)[0]["cumulative"]["goodput"]
    return rows, shares
