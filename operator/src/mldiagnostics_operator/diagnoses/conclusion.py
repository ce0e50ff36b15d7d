"""The result of a diagnosis in the status of its capture."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import ConditionType
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import CaptureDiagnosis, ObjectMeta
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, RequestRejected, path_to
from mldiagnostics_kube.process.retry import retry

from mldiagnostics_operator.announcements import Announcement, announce
from mldiagnostics_operator.diagnoses.diagnosis import DiagnosisFailed, log_directories
from mldiagnostics_operator.diagnoses.result import MAX_MESSAGE, bytes_left, capture_diagnosis, results_left, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.diagnoses.result import RunDiagnosis


_log: Final = logging.getLogger(__name__)

_WRITE_S: Final = 300.0
_INVALID: Final = 422
"""Status of an object that its definition does not allow."""


async def conclude(
    cluster: ApiClient,
    body: Mapping[str, Any],
    result: Sequence[RunDiagnosis] | DiagnosisFailed,
    *,
    me: str,
    clock: Clock,
) -> None:
    """Write a result into the status of its capture, with an event.

    Nothing happens if the object is gone or has one. The result of the capture itself is not changed, but for traces
    that were deleted after a pulse.

    Raises:
        ClusterError: The status could not be written for minutes; the next call may succeed.
    """
    status = body["status"]
    runs = (status.get("diagnosis") or {}).get("runs") or ()
    changes: dict[str, Any] = {}
    if isinstance(result, DiagnosisFailed):
        diagnosis = CaptureDiagnosis(state="Failed", summary=f"not diagnosed: {result.reason}", runs=list(runs) or None)
        condition = {"status": "False", "reason": result.reason, "message": str(result)[:MAX_MESSAGE]}
    else:
        results = status.get("results") or ()
        diagnosis = capture_diagnosis(result, results, runs=runs)
        if any(each.traces is not None for each in result):
            changes["results"] = results_left(results, result)
            left = bytes_left(result, len(log_directories(body)))
            changes |= {} if left is None else {"bytes": left}
        condition = {"status": "True", "reason": "Diagnosed", "message": sentence(diagnosis)[:MAX_MESSAGE]}
    changes["diagnosis"] = diagnosis.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not await _write(cluster, body, condition, changes, clock=clock):
        return
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


async def _write(
    cluster: ApiClient,
    body: Mapping[str, Any],
    condition: dict[str, str],
    changes: Mapping[str, Any],
    *,
    clock: Clock,
) -> bool:
    meta = body["metadata"]
    path = path_to(*CONNECTIONS.gvr, namespace=meta["namespace"], name=meta["name"])

    async def is_written() -> bool:
        """Try once; return False if no other try can succeed."""
        try:
            current = await cluster.get(path)
            status = current.get("status") or {}
            if current["metadata"]["uid"] != meta["uid"] or (status.get("diagnosis") or {}).get("state") != "Pending":
                return False
            conditions = _with_result(
                status.get("conditions") or (), condition | {"lastTransitionTime": format_time(clock())}
            )
            version = {"resourceVersion": current["metadata"]["resourceVersion"]}
            await cluster.patch(
                f"{path}/status", {"metadata": version, "status": {"conditions": conditions, **changes}}
            )
        except NotFound:
            return False
        except RequestRejected as rejection:
            if rejection.status != _INVALID:
                raise
            _log.warning(
                "The diagnosis of %(namespace)s/%(object)s is dropped: %(error)s",
                {"namespace": meta["namespace"], "object": meta["name"], "error": rejection},
            )
            return False
        return True

    return await retry(is_written, on=ClusterError, until=asyncio.get_running_loop().time() + _WRITE_S)


def _with_result(conditions: Sequence[Mapping[str, Any]], result: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return all conditions with the result in the one of diagnoses."""
    diagnosed = str(ConditionType.DIAGNOSED)
    ours = next((each for each in conditions if each["type"] == diagnosed), {"type": diagnosed})
    return [*(dict(each) for each in conditions if each["type"] != diagnosed), {**ours, **result}]
