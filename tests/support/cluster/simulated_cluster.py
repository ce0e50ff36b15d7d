"""One Secret and one configuration in memory; every call waits for the test."""

from __future__ import annotations

import copy
from types import coroutine
from typing import TYPE_CHECKING, Any

from mldiagnostics_kube.client.apiserver import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Generator

Json = dict[str, Any]


@coroutine
def turn() -> Generator[None]:
    """Suspend until the driver of the coroutine continues."""
    yield


class SimulatedCluster:
    """A simulated API server for reads and server-side applies of these two, in any order of callers.

    A real one cannot be made to interleave the calls of several replicas in every way; this one is driven step by step.
    """

    def __init__(self, secret_path: str, configuration_path: str) -> None:
        self.objects: dict[str, Json] = {}
        self.secret_path = secret_path
        self.configuration_path = configuration_path
        self.writes = 0
        self._version = 0

    def put(self, path: str, body: Json) -> None:
        """Store an object as an administrator."""
        self._version += 1
        metadata = {**body.get("metadata", {}), "resourceVersion": str(self._version)}
        self.objects[path] = {**copy.deepcopy(body), "metadata": metadata}

    def remove(self, path: str) -> None:
        """Delete an object, if it is there."""
        self.objects.pop(path, None)

    async def get(self, path: str) -> Json:
        await turn()
        if path not in self.objects:
            raise NotFound(path, status=404)
        return copy.deepcopy(self.objects[path])

    async def request(self, method: str, path: str, *, query: Any, body: Json, content_type: str) -> Json:
        assert (method, content_type) == ("PATCH", "application/apply-patch+yaml")
        assert dict(query)["force"] == "true"
        await turn()
        expected = body["metadata"].get("resourceVersion")
        present = self.objects.get(path)
        if expected is not None and (present is None or present["metadata"]["resourceVersion"] != expected):
            raise Conflict(path, status=409)
        self.put(path, _applied(present or {"metadata": {"name": body["metadata"]["name"]}}, body))
        self.writes += 1
        return copy.deepcopy(self.objects[path])


def _applied(present: Json, body: Json) -> Json:
    """Merge as server-side apply does: data by key, webhooks by name."""
    merged = copy.deepcopy(present)
    if "data" in body:
        merged["data"] = {**merged.get("data", {}), **body["data"]}
    bundles = {entry["name"]: entry["clientConfig"]["caBundle"] for entry in body.get("webhooks", ())}
    for entry in merged.get("webhooks", ()):
        if entry["name"] in bundles:
            entry["clientConfig"]["caBundle"] = bundles[entry["name"]]
    return merged
