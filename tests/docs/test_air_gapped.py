"""The page about air-gapped clusters names every image, and the charts use no other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release.parts import DEFAULT_REGISTRY, IMAGES, PARTS
from release.render import rendered
from release.version import current
from support.cluster.charts import EVERY_SWITCH

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs/how-to/air-gapped.md"
JOB = "diagnosis-job.json"


def pods(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the specs of all pods in objects, also that of the Job in the operator's ConfigMap."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        if JOB in value:
            yield from pods(json.loads(value[JOB]))
        for part in value.values():
            yield from pods(part)
    elif isinstance(value, list):
        for part in value:
            yield from pods(part)


def test_the_table_has_every_image() -> None:
    rows = re.findall(r"^\| `(mldiagnostics-[a-z-]+)` \| ", PAGE.read_text(), re.MULTILINE)
    assert rows == [image.name for image in IMAGES]


def test_the_charts_use_these_images_with_the_pull_secret() -> None:
    specs = [spec for part in PARTS for spec in pods(rendered(part, EVERY_SWITCH[part.name]))]
    assert len(specs) == 7  # three Deployments, the Job of a diagnosis, and the pods of `helm test`
    used = {container["image"] for spec in specs for container in spec["containers"]}
    assert used == {f"{DEFAULT_REGISTRY}/{image.name}:{current()}" for image in IMAGES}
    assert all(spec["imagePullSecrets"] == [{"name": "pull"}] for spec in specs)
