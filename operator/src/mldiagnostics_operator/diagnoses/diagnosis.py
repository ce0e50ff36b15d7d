"""One diagnosis in this process: from a pending capture to its findings."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import MLDiagnosticsError, NotStored, StoreUnreachable
from mldiagnostics.findings import MAX_DIAGNOSIS_BYTES, parse_diagnosis
from mldiagnostics.layout import diagnosis_key
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.conditions import condition_of
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import ConditionType
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import CaptureDiagnosis, ObjectMeta
from mldiagnostics_kube.client.apiserver import (
    JSON_PATCH,
    ClusterError,
    Conflict,
    NotFound,
    RequestRejected,
    Unavailable,
    path_to,
)
from mldiagnostics_kube.process.retry import retry

from mldiagnostics_operator.announcements import Announcement, announce
from mldiagnostics_operator.diagnoses.result import capture_diagnosis
from mldiagnostics_operator.storage import retry_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.findings import Diagnosis
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.diagnoses.job import JobTemplate
    from mldiagnostics_operator.storage import Storage

__all__ = ["DiagnosisFailed", "Diagnostician", "conclude"]

_log: Final = logging.getLogger(__name__)

LONGEST_S: Final = 1800.0
"""A Job that has not ended then is given up: its own deadline is shorter, so it waits for a node."""
_POLL_S: Final = 2.0
_READ_S: Final = 30.0
_WRITE_S: Final = 300.0
_ENDED: Final = frozenset({"Complete", "Failed", "FailureTarget"})


class DiagnosisFailed(Exception):
    """There is no result; `reason` is one word, the message has the cause."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Diagnostician:
    """Makes the Jobs and reads their results.

    Args:
        cluster: Client of the API server.
        template: Template of the Jobs.
        storage: Storage of the captures.
        namespace: Namespace of the Jobs.
    """

    def __init__(self, cluster: ApiClient, template: JobTemplate, storage: Storage, *, namespace: str) -> None:
        self._cluster, self._template, self._storage = cluster, template, storage
        self._jobs = path_to("batch", "v1", "jobs", namespace=namespace)

    async def diagnose(self, body: Mapping[str, Any]) -> Diagnosis:
        """Return the diagnosis of a capture.

        Raises:
            DiagnosisFailed: No Job can read the traces, it failed, or its result is not valid.
        """
        location, session = log_directory(body), str(body["status"]["sessionId"])
        if obstacle := self._template.obstacle(location):
            raise DiagnosisFailed("StorageNotShared", obstacle)
        job = self._template.manifest(body["metadata"]["uid"], location, session)
        try:
            async with asyncio.timeout(LONGEST_S):
                await self._run(job)
        except TimeoutError:
            name = job["metadata"]["name"]
            message = f"Job {name} has not ended in {LONGEST_S:g} s; see `kubectl describe job {name}`"
            raise DiagnosisFailed("TimedOut", message) from None
        except ClusterError as error:
            raise DiagnosisFailed("JobRejected", f"the Job could not be created or read: {error}") from error
        return await self._read(location, session, job["metadata"]["name"])

    async def _run(self, job: dict[str, Any]) -> None:
        """Create a Job, unless there is one of its name, and return when it has ended."""
        path = f"{self._jobs}/{job['metadata']['name']}"
        with suppress(Conflict):  # an earlier leader made it
            await retry(lambda: self._cluster.create(self._jobs, job), on=Unavailable)
        while True:
            try:
                current = await retry(lambda: self._cluster.get(path), on=Unavailable)
            except NotFound:
                return  # it has ended, and was deleted
            conditions = [condition_of(current, kind) for kind in _ENDED]
            if any(condition is not None and condition.holds for condition in conditions):
                return
            await asyncio.sleep(_POLL_S)

    async def _read(self, location: Location, session: str, job: str) -> Diagnosis:
        directory, key = self._storage.directory(location), diagnosis_key(session)
        until = asyncio.get_running_loop().time() + _READ_S
        try:
            content = await retry_until(
                lambda: directory.load(key, max_bytes=MAX_DIAGNOSIS_BYTES), on=StoreUnreachable, until=until
            )
            diagnosis = parse_diagnosis(content, source=str(location.child(key)))
        except NotStored:
            message = f"Job {job} left no result; see its log, `kubectl logs job/{job}`"
            raise DiagnosisFailed("JobFailed", message) from None
        except (MLDiagnosticsError, ValueError) as error:
            raise DiagnosisFailed("InvalidResult", str(error)) from error
        if diagnosis.session != session:
            raise DiagnosisFailed("InvalidResult", f"{location.child(key)}: is about another session")
        return diagnosis


def log_directory(body: Mapping[str, Any]) -> Location:
    """Return the log directory of a finished capture, as the operator wrote it."""
    return Location.parse(body["status"]["captureResult"]["outputLocation"])


async def conclude(
    cluster: ApiClient, body: Mapping[str, Any], result: Diagnosis | DiagnosisFailed, *, me: str, clock: Clock
) -> CaptureDiagnosis | None:
    """Write a result into the status of its capture, with an event.

    Return None if the object is gone or has a result.     The result of the capture itself is never changed.
    """
    status = body["status"]
    runs = (status.get("diagnosis") or {}).get("runs") or ()
    if isinstance(result, DiagnosisFailed):
        diagnosis = CaptureDiagnosis(state="Failed", summary=f"not diagnosed: {result.reason}", runs=list(runs) or None)
        condition = {"status": "False", "reason": result.reason, "message": str(result)[:1024]}
    else:
        diagnosis = capture_diagnosis(result, status.get("results") or (), runs=runs)
        condition = {"status": "True", "reason": "Diagnosed", "message": diagnosis.summary or ""}
    if not await _write(cluster, body, diagnosis, condition, clock):
        return None
    is_problem = isinstance(result, DiagnosisFailed) or bool(diagnosis.critical or diagnosis.warnings)
    event = "DiagnosisFailed" if isinstance(result, DiagnosisFailed) else "Diagnosed"
    await announce(
        cluster,
        CONNECTIONS,
        ObjectMeta.model_validate(body["metadata"]),
        Announcement(event, condition["message"], warning=is_problem),
        me=me,
        now=clock(),
    )
    return diagnosis


async def _write(
    cluster: ApiClient,
    body: Mapping[str, Any],
    diagnosis: CaptureDiagnosis,
    condition: Mapping[str, str],
    clock: Clock,
) -> bool:
    meta, conditions = body["metadata"], body["status"]["conditions"]
    at = next(at for at, each in enumerate(conditions) if each["type"] == ConditionType.DIAGNOSED)
    changed = {**conditions[at], **condition, "lastTransitionTime": format_time(clock())}
    result = diagnosis.model_dump(mode="json", by_alias=True, exclude_none=True)
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        {"op": "test", "path": "/status/diagnosis/state", "value": "Pending"},
        {"op": "test", "path": f"/status/conditions/{at}/type", "value": str(ConditionType.DIAGNOSED)},
        {"op": "replace", "path": "/status/diagnosis", "value": result},
        {"op": "replace", "path": f"/status/conditions/{at}", "value": changed},
    ]
    path = path_to(*CONNECTIONS.gvr, namespace=meta["namespace"], name=meta["name"])
    until = asyncio.get_running_loop().time() + _WRITE_S
    try:
        await retry(
            lambda: cluster.patch(f"{path}/status", patch, content_type=JSON_PATCH),
            on=(Unavailable, Conflict),
            until=until,
        )
    except NotFound:
        return False
    except RequestRejected as rejection:
        _log.info("The diagnosis of %s/%s is dropped: %s", meta["namespace"], meta["name"], rejection)
        return False
    return True
