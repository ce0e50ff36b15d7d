"""README of a chart: every value with its default and its comment in values.yaml."""

import base64
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from release import readme
from release.parts import PARTS, Part
from release.render import Object, rendered
from support.cluster.charts import one

each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)

CHART = """
apiVersion: v2
name: toy
description: Does nothing
version: 0.1.0
kubeVersion: ">=1.32.0-0"
maintainers: [{name: somebody}]
annotations:
  artifacthub.io/images: "[{name: toy, image: toy:1}]"
"""
VALUES = """
# About the file, not about a value.

# A group
# in two lines.
group:
  # Either `a` | `b`.
  inner: "a"

  other: {}
# A map.
free:
  # Not a key of the chart.
  key: [1]
"""
SCHEMA = """
{"properties": {
  "group": {"properties": {"inner": {"type": "string"}, "other": {"type": "object"}}},
  "free": {"type": "object"}
}}
"""


def rows(text: str) -> list[tuple[str, ...]]:
    """Return the cells of the table without its header."""
    lines = (line for line in text.splitlines() if line.startswith("| `"))
    return [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines]


def test_values_are_listed_with_default_and_comment(tmp_path: Path) -> None:
    for name, text in (("Chart.yaml", CHART), ("values.yaml", VALUES), ("values.schema.json", SCHEMA)):
        (tmp_path / name).write_text(text)
    assert rows(readme.text(tmp_path)) == [
        ("`group`", "", "A group in two lines."),
        ("`group.inner`", '`"a"`', "Either `a` \\| `b`."),
        ("`group.other`", "`{}`", ""),
        ("`free`", '`{"key": [1]}`', "A map."),
    ]


@each_part
def test_every_value_is_described(part: Part) -> None:
    table = rows(readme.text(part.chart))
    assert [path for path, _, description in table if not description] == []
    defaults = {path.strip("`"): default.strip("`") for path, default, _ in table}
    values = yaml.safe_load((part.chart / "values.yaml").read_text())
    assert {path.split(".")[0] for path in defaults} == set(values)
    assert json.loads(defaults["replicas"]) == values["replicas"]


@each_part
def test_the_chart_names_its_maintainers_its_icon_and_its_image(part: Part) -> None:
    about: Object = yaml.safe_load((part.chart / "Chart.yaml").read_text())
    assert about["maintainers"]
    kind, data = about["icon"].split(",")
    assert kind == "data:image/svg+xml;base64"
    assert ET.fromstring(base64.b64decode(data)).tag.endswith("svg")  # noqa: S314 (our own file)
    (image,) = yaml.safe_load(about["annotations"]["artifacthub.io/images"])
    deployment = one(rendered(part), "Deployment", part.name)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image["image"]
