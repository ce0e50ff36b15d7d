"""Deletes the files of runs with `retention.deleteArtifacts`.

A finalizer keeps the object until then.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import StoreError
from mldiagnostics_api.names import ARTIFACTS_FINALIZER
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.artifacts import ArtifactAction, artifact_action
from mldiagnostics_kube.cache.informer import Backoff, Informer, Selection
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, Unavailable, path_to
from mldiagnostics_kube.process.retry import retry

from mldiagnostics_operator.announcements import Announcement, announce
from mldiagnostics_operator.runs.cleanup.artifacts import ForeignFiles
from mldiagnostics_operator.runs.keys import ObjectKey
from mldiagnostics_operator.runs.run import Run
from mldiagnostics_operator.runs.watches.run_store import RunStore
from mldiagnostics_operator.workqueue import Workqueue

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mldiagnostics_kube.cache.informer import InformerMetrics
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.runs.cleanup.artifacts import RunArtifacts
    from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords
    from mldiagnostics_operator.runs.status.write_rate import WriteRate

_log: Final = logging.getLogger(__name__)

TRIES_S: Final = (1.0, 4.0, 15.0)
"""Pauses between the tries of a deletion that its storage refuses."""
DELETION_S: Final = 300.0
"""Time limit of one deletion, all tries included."""
AT_ONCE: Final = 8
"""Runs whose files are deleted at the same time."""
POLL_S: Final = 1.0
"""Pause between two looks at a deleted run that has not ended."""


class RunDeletions:
    """Holds runs whose files go with them, and deletes these files.

    Args:
        cluster: Client of the API server.
        namespaces: Namespaces of the runs; None stands for all.
        artifacts: Deletes files.
        rate: Limit on all writes of runs.
        metrics: Metrics of the watch.
        records: Writes files of runs; it forgets a run before its files are deleted.
        me: Name of this process in events.
        clock: Wall clock.
        backoff: Pauses after failures of the watch.
    """

    def __init__(
        self,
        cluster: ApiClient,
        namespaces: Collection[str | None],
        artifacts: RunArtifacts,
        rate: WriteRate,
        metrics: InformerMetrics,
        *,
        records: ClusterRecords,
        me: str,
        clock: Clock,
        backoff: Backoff,
    ) -> None:
        self._cluster = cluster
        self._artifacts = artifacts
        self._records = records
        self._rate = rate
        self._me = me
        self._clock = clock
        self._queue: Workqueue[ObjectKey] = Workqueue()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._informers = [
            Informer(
                "deletable-runs",
                [path_to(*RUNS.gvr, namespace=namespace)],
                cluster=cluster,
                store=RunStore(self.consider, self._queue.add),
                metrics=metrics,
                backoff=backoff,
                selection=Selection(fields="spec.retention.deleteArtifacts=true", metadata_only=False),
            )
            for namespace in namespaces
        ]

    def consider(self, body: Mapping[str, Any]) -> None:
        """Accept a run as the API returns it, with or without the field."""
        if artifact_action(body, self._clock()) is not ArtifactAction.NONE:
            self._queue.add(ObjectKey(body["metadata"]["namespace"], body["metadata"]["name"]))

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            while True:
                key = await self._queue.get()
                group.create_task(self._settle(key))

    async def _settle(self, key: ObjectKey) -> None:
        """Take the steps of a run until it needs none."""
        path = path_to(*RUNS.gvr, namespace=key.namespace, name=key.name)
        try:
            while await retry(lambda: self._step(path), on=(Unavailable, Conflict)):  # noqa: ASYNC110 - polls
                await asyncio.sleep(POLL_S)
        except NotFound:
            return
        except (ClusterError, ValueError) as error:
            _log.warning(
                "The files of run %(run)s cannot be deleted with it: %(error)s", {"run": key.title, "error": error}
            )
        finally:
            self._queue.done(key)

    async def _step(self, path: str) -> bool:
        """Take the next step of a run; return whether another may follow."""
        body = await self._cluster.get(path)
        event: Announcement | None = None
        match artifact_action(body, self._clock()):
            case ArtifactAction.NONE:
                return False
            case ArtifactAction.WAIT:
                return True
            case ArtifactAction.HOLD:
                await self._set_finalizers(path, body, [*_finalizers(body), ARTIFACTS_FINALIZER])
                return True
            case ArtifactAction.KEEP:
                event = _kept("the run has not ended; delete them with `mldiag runs delete` after its end")
            case ArtifactAction.GIVE_UP:
                event = _GIVEN_UP
            case ArtifactAction.DELETE:
                async with self._slots:
                    in_time = artifact_action(body, self._clock()) is ArtifactAction.DELETE
                    event = await self._delete(Run.of(body)) if in_time else _GIVEN_UP
            case ArtifactAction.RELEASE:
                pass
        if event is not None:
            await announce(self._cluster, RUNS, Run.of(body).meta, event, me=self._me, now=self._clock())
        await self._set_finalizers(path, body, [name for name in _finalizers(body) if name != ARTIFACTS_FINALIZER])
        return True

    async def _delete(self, run: Run) -> Announcement:
        """Delete the files of a run in a bounded number of tries; return what happened."""
        try:
            async with asyncio.timeout(DELETION_S):
                await self._records.forget(run)
                done = await self._try_to_delete(run)
        except TimeoutError:
            return _kept(f"the storage did not finish within {DELETION_S:g} s; delete the rest by hand")
        except StoreError as error:
            return _kept(f"the storage refuses: {error}")
        except ForeignFiles as error:
            return _kept(f"no record there names this run and its namespace, or one names another: {error}")
        except ValueError as error:
            return _kept(str(error))
        _log.info("Deleted the files of run %(run)s: %(result)s", {"run": run.key.title, "result": done})
        return Announcement("ArtifactsDeleted", f"Deleted {', '.join(done)}" if done else "The run has no files")

    async def _try_to_delete(self, run: Run) -> list[str]:
        for pause_s in TRIES_S:
            try:
                return await self._artifacts.delete(run)
            except StoreError as error:
                _log.info(
                    "The files of run %(run)s are deleted again in %(seconds)g s: %(error)s",
                    {"run": run.key.title, "seconds": pause_s, "error": error},
                )
            await asyncio.sleep(pause_s)
        return await self._artifacts.delete(run)

    async def _set_finalizers(self, path: str, body: Mapping[str, Any], names: list[str]) -> None:
        metadata = body["metadata"]
        unchanged = {"uid": metadata["uid"]}
        # Of a deleted object they only become fewer, and a new status must not repeat the deletion of files.
        if "deletionTimestamp" not in metadata:
            unchanged["resourceVersion"] = metadata["resourceVersion"]
        await self._rate.take(metadata["namespace"])
        await self._cluster.patch(path, {"metadata": {**unchanged, "finalizers": names}})


def _finalizers(body: Mapping[str, Any]) -> list[str]:
    return list(body["metadata"].get("finalizers") or ())


def _kept(why: str) -> Announcement:
    return Announcement("ArtifactsKept", f"Files of the run are left in its storage: {why}", warning=True)


_GIVEN_UP: Final = _kept("they could not be deleted in time; delete them by hand")
