"""README.md of a chart, made of Chart.yaml, the comments of values.yaml, and values.schema.json."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Values = Mapping[str, Any]
Row = tuple[str, str, str]
"""Path, default and description."""

HEADER = "<!-- Generated from Chart.yaml and values.yaml by `make manifests`; do not edit. -->\n"
KEY = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]\w*):")
COMMENT = re.compile(r"^ *# ?(?P<text>.*)$")
INDENT = 2


def text(chart: Path) -> str:
    """Return the README of the chart in this folder.

    Raises:
        KeyError: a value is missing in values.yaml or in the schema.
    """
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    source = (chart / "values.yaml").read_text()
    schema = json.loads((chart / "values.schema.json").read_text())
    rows = _rows(yaml.safe_load(source), schema, comments(source))
    fleets = chart / "fleets.md"
    more = [fleets.read_text()] if fleets.exists() else []
    return "\n".join([HEADER, *_introduction(about), "## Values", "", *_table(rows), "", *more])


def comments(source: str) -> dict[str, str]:
    """Return the comment directly above each key of values.yaml, by path."""
    by_path: dict[str, str] = {}
    path: list[str] = []
    pending: list[str] = []
    for line in source.splitlines():
        if key := KEY.match(line):
            path = [*path[: len(key["indent"]) // INDENT], key["key"]]
            by_path[".".join(path)] = " ".join(part for part in pending if part)
            pending = []
        elif comment := COMMENT.match(line):
            pending.append(comment["text"].strip())
        else:
            pending = []
    return by_path


def _introduction(about: Values) -> Iterator[str]:
    name = about["name"]
    yield f"# {name}\n\n{about['description']}.\n"
    images = yaml.safe_load(about["annotations"]["artifacthub.io/images"])
    yield f"Kubernetes {about['kubeVersion'].removesuffix('-0')}, image `{images[0]['image']}`.\n"
    yield f"```\nhelm install {name} CHART -n gke-mldiagnostics --create-namespace\n```\n"
    yield (
        "`CHART` is this folder, a packaged chart or an `oci://` address. Every value has a working default;"
        " unknown keys are rejected."
    )
    yield "See docs/install.md in the source repository for options, upgrades and removal.\n"
    yield from (f"Source: <{url}>\n" for url in about.get("sources", ()))
    yield f"Maintained by {', '.join(each['name'] for each in about['maintainers'])}.\n"


def _rows(values: Values, schema: Values, described: Mapping[str, str], prefix: str = "") -> Iterator[Row]:
    """Yield every value, and every group with a comment; the schema separates groups from maps."""
    for key, value in values.items():
        path, known = f"{prefix}{key}", schema["properties"][key]
        if value and isinstance(value, dict) and value.keys() == known.get("properties", {}).keys():
            if described[path]:
                yield path, "", described[path]
            yield from _rows(value, known, described, f"{path}.")
        else:
            yield path, f"`{json.dumps(value, ensure_ascii=False)}`", described[path]


def _table(rows: Iterator[Row]) -> Iterator[str]:
    yield "| value | default | description |"
    yield "|---|---|---|"
    for path, default, description in rows:
        yield f"| `{path}` | {_cell(default)} | {_cell(description)} |"


def _cell(content: str) -> str:
    """Escape text for a cell of a table."""
    return content.replace("|", "\\|")
