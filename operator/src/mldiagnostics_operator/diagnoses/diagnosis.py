"""One diagnosis in this process: from a pending capture to its findings."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import MLDiagnosticsError, NotStored, StoreUnreachable
from mldiagnostics.findings import MAX_DIAGNOSIS_BYTES, parse_diagnosis
from mldiagnostics.layout import PROFILE_DIR, diagnosis_key
from mldiagnostics_api.captures.location import Location
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, path_to

from mldiagnostics_operator.diagnoses.job_state import blocked, has_ended, loss, never_started
from mldiagnostics_operator.diagnoses.pulse import PulseTraces
from mldiagnostics_operator.diagnoses.result import RunDiagnosis
from mldiagnostics_operator.request_retry import retry_request
from mldiagnostics_operator.storage import retry_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.findings import Diagnosis
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.diagnoses.job import JobTemplate
    from mldiagnostics_operator.storage import Storage


_log: Final = logging.getLogger(__name__)

LONGEST_S: Final = 1800.0
"""A Job that has not ended then is given up: its own deadline is shorter, so it waits for a node."""
BLOCKED_S: Final = 60.0
"""A container that cannot start for so long, for example without its image, is given up."""
MAX_DIRECTORIES: Final = 16
"""Log directories of one capture that are diagnosed, as many as it has runs in its status."""
_POLL_S: Final = 2.0
_READ_S: Final = 30.0


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
        self._pulse = PulseTraces(storage)
        self._jobs = path_to("batch", "v1", "jobs", namespace=namespace)
        self._pods = path_to("", "v1", "pods", namespace=namespace)

    async def diagnose(self, body: Mapping[str, Any]) -> list[RunDiagnosis]:
        """Return the diagnosis of each log directory of a capture.

        A capture of several runs has one for each. Of a pulse, the traces that are not needed any more are deleted.

        Raises:
            DiagnosisFailed: There is none: no Job can read the traces, it failed, or its result is not valid.
        """
        uid, session = body["metadata"]["uid"], str(body["status"]["sessionId"])
        runs = (body["status"].get("diagnosis") or {}).get("runs") or ()
        is_pulse = bool(body["spec"]["triggerCapture"].get("pulse"))
        directories = log_directories(body)
        diagnoses: list[RunDiagnosis] = []
        failure: DiagnosisFailed | None = None
        for number, location in enumerate(directories):
            name = uid if len(directories) == 1 else f"{uid}-{number}"
            run_id = location.segments[-1] if len(directories) > 1 and location.segments else None
            try:
                diagnosis = await self._diagnose(name, location, session)
            except DiagnosisFailed as error:
                failure = error
            else:
                traces = await self._pulse.reduce(location, session, diagnosis, uid=uid) if is_pulse else None
                run_id = run_id if run_id in runs else None
                diagnoses.append(RunDiagnosis(diagnosis, run_id, directory=str(location), traces=traces))
        if failure is not None and not diagnoses:
            raise failure
        return diagnoses

    async def _diagnose(self, name: str, location: Location, session: str) -> Diagnosis:
        """Return the diagnosis of one log directory by a Job."""
        if obstacle := self._template.obstacle(location):
            raise DiagnosisFailed("StorageNotShared", obstacle)
        job = self._template.manifest(name, location, session)
        name = job["metadata"]["name"]
        try:
            async with asyncio.timeout(LONGEST_S):
                problem = await self._run(job)
        except TimeoutError:
            message = f"Job {name} has not ended in {LONGEST_S:g} s; see `kubectl describe job {name}`"
            raise DiagnosisFailed("TimedOut", message) from None
        except ClusterError as error:
            _log.warning("Job %(name)s cannot be created or read: %(error)s", {"name": name, "error": error})
            message = f"Job {name} cannot be created or read: {error.cause}"
            raise DiagnosisFailed(
                "JobRejected", f"{message}; ask the administrator to check the operator's roles and log"
            ) from error
        return await self._read(location, session, name, problem)

    async def _run(self, job: dict[str, Any]) -> str:
        """Run a Job to its end and return why it failed; empty if it did not.

        A Job of its name, of an earlier leader, is used.

        Raises:
            DiagnosisFailed: Its container cannot start.
        """
        path = f"{self._jobs}/{job['metadata']['name']}"
        with suppress(Conflict):  # an earlier leader made it
            await retry_request(lambda: self._cluster.create(self._jobs, job))
        loop = asyncio.get_running_loop()
        startable_s = loop.time()
        while True:
            try:
                current = await retry_request(lambda: self._cluster.get(path))
            except NotFound:
                return ""  # it has ended, and was deleted
            if has_ended(current):
                return loss(current, await self._pods_of(current))
            obstacle = blocked(await self._pods_of(current)) if never_started(current) else None
            if obstacle is None:
                startable_s = loop.time()
            elif loop.time() - startable_s >= BLOCKED_S:
                message = f"Job {current['metadata']['name']} cannot start: {obstacle}"
                raise DiagnosisFailed("JobNotStarted", message)
            await asyncio.sleep(_POLL_S)

    async def _pods_of(self, job: Mapping[str, Any]) -> list[dict[str, Any]]:
        labels = f"batch.kubernetes.io/job-name={job['metadata']['name']}"
        return await retry_request(lambda: self._cluster.items(self._pods, dict, labels=labels))

    async def _read(self, location: Location, session: str, job: str, problem: str) -> Diagnosis:
        directory, key = self._storage.directory(location), diagnosis_key(session)
        until = asyncio.get_running_loop().time() + _READ_S
        try:
            content = await retry_until(
                lambda: directory.load(key, max_bytes=MAX_DIAGNOSIS_BYTES), on=StoreUnreachable, until=until
            )
            diagnosis = parse_diagnosis(content, source=str(location.child(key)))
        except NotStored:
            cause = f": {problem}" if problem else ""
            message = f"Job {job} left no result{cause}; see its log, `kubectl logs job/{job}`"
            raise DiagnosisFailed("JobFailed", message) from None
        except (MLDiagnosticsError, ValueError) as error:
            raise DiagnosisFailed("InvalidResult", str(error)) from error
        if diagnosis.session != session:
            raise DiagnosisFailed("InvalidResult", f"{location.child(key)}: is about another session")
        return diagnosis


def log_directories(body: Mapping[str, Any]) -> list[Location]:
    """Return the log directories of a finished capture, in a fixed order."""
    status = body["status"]
    files = [str(each["file"]) for each in status.get("results") or () if each.get("file")]
    directories = {file.rpartition(f"{PROFILE_DIR}/")[0] for file in files}
    if not directories:  # the results did not fit into the status
        directories = {status["captureResult"]["outputLocation"]}
    return [Location.parse(each) for each in sorted(directories)][:MAX_DIRECTORIES]
