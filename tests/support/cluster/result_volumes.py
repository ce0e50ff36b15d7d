"""A volume of the operator with a run of one namespace, and one of another."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.results import PART_BYTES
from mldiagnostics_kube.installation.result_files import VolumeDirectory

if TYPE_CHECKING:
    from pathlib import Path

RUN, OTHER_RUN = "4f6c" + 60 * "0", "81aa" + 60 * "0"
SESSION = f"{RUN}/plugins/profile/a0-s100"
TRACE = os.urandom(2 * PART_BYTES + 12345)
LAB = "cluster 'lab'"


def put(path: Path, content: bytes | dict[str, Any]) -> None:
    """Write a file, or a document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def make_volume(volume: Path, namespace: str) -> Path:
    """Write the volume; its first run is of the namespace, with a session of a program."""
    put(volume / RUN / "run.json", {"v": 1, "runId": RUN, "namespace": namespace})
    put(volume / RUN / "records/a0-r0-00000000-00001.jsonl", b"{}\n")
    put(volume / SESSION / "trainer-0.xplane.pb", TRACE)
    put(volume / SESSION / "empty.json", b"")
    put(volume / OTHER_RUN / "run.json", {"v": 1, "runId": OTHER_RUN, "namespace": "other"})
    return volume


def wanted(location: str, namespace: str, *suffixes: str) -> VolumeDirectory:
    """Return a directory to copy, by default its records."""
    return VolumeDirectory(location=location, namespace=namespace, suffixes=suffixes or (".json", ".jsonl"))
