"""Reports as one HTML file without network access or libraries."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.goodput.render.comparison import names, rows
from mldiagnostics.goodput.render.drawing import drawing
from mldiagnostics.goodput.render.sections import comparison, section, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.view import RunView


def page(runs: Sequence[tuple[GoodputReport, RunView]]) -> str:
    """Return the page for runs, each with its report and the view of the report."""
    reports = [report for report, _ in runs]
    drawings = [drawing(report, view, share=1 / len(runs)) for report, view in runs]
    sections = [
        section(report, number, [name for name, *_ in drawn["windows"]])
        for number, (report, drawn) in enumerate(zip(reports, drawings, strict=True))
    ]
    if len(reports) > 1:
        sections.insert(0, comparison(reports, names(reports), rows(reports)))
    data = json.dumps(drawings, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    style, script = _part("page.css"), _part("page.js")
    heading = escape(title(reports[0]) if len(reports) == 1 else ", ".join(names(reports)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Goodput: {heading}</title><style>{style}</style></head><body>{''.join(sections)}"
        f'<script type="application/json" id="runs">{data}</script><script>{script}</script></body></html>\n'
    )


def _policy(script: str) -> str:
    """Return a policy by which the page requests nothing and runs only its own script."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
