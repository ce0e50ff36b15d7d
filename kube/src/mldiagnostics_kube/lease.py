"""Leader election with a coordination.k8s.io Lease.

The decision is pure, the loop is around it. The protocol is that of client-go. A candidate takes the Lease over only
after it has seen it unchanged for the whole duration on its own clock, so clocks of different machines are never
compared. A leader stops leading when it could not renew within the renew deadline, which is shorter than the duration.
"""

import asyncio
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, path_to
from mldiagnostics_kube.process.clock import Clock, utc_now

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Times of the election in seconds; duration > renew deadline > 2 x retry."""

    duration_s: float = 15.0
    """How long a leader keeps the Lease without renewing it."""
    renew_deadline_s: float = 10.0
    """How long a leader tries to renew before it stops leading."""
    retry_s: float = 2.0
    """Pause between two reads of the Lease."""

    @property
    def call_timeout_s(self) -> float:
        """Timeout of one call; one in flight at the renew deadline ends in the duration."""
        return self.duration_s - self.renew_deadline_s


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease object, reduced to the fields of the election.

    Example:
        lease = Lease.of(await client.get(path))
        leader = lease.holder or None
    """

    holder: str
    """Identity of the leader; empty if the Lease is released."""
    duration_s: float
    version: str
    """resourceVersion that a write must replace."""
    transitions: int = 0
    acquired: str | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Lease":
        """Parse a Lease object; one without a holder is released."""
        spec = body.get("spec") or {}
        return cls(
            holder=spec.get("holderIdentity") or "",
            duration_s=float(spec.get("leaseDurationSeconds") or 0),
            version=body["metadata"]["resourceVersion"],
            transitions=spec.get("leaseTransitions") or 0,
            acquired=spec.get("acquireTime"),
        )


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """A Lease as a candidate sees it, and for how long it has been unchanged."""

    lease: Lease | None
    """None if the object does not exist."""
    since: float
    """Time of the last change on the local monotonic clock."""


class LeaseStep(StrEnum):
    """Next action of a candidate."""

    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def observe(last: LeaseObservation | None, lease: Lease | None, now: float) -> LeaseObservation:
    """Return the observation of a Lease read at `now`, given the previous observation."""
    return last if last is not None and last.lease == lease else LeaseObservation(lease, now)


def decide(observation: LeaseObservation, identity: str, now: float, timing: LeaseTiming) -> LeaseStep:
    """Decide whether candidate `identity` takes or renews the Lease, or waits."""
    lease = observation.lease
    if lease is None or not lease.holder or _is_earlier_process(lease.holder, identity):
        return LeaseStep.TAKE
    if lease.holder == identity:
        return LeaseStep.RENEW
    unchanged_s = now - observation.since
    return LeaseStep.TAKE if unchanged_s >= max(timing.duration_s, lease.duration_s) else LeaseStep.WAIT


def _is_earlier_process(holder: str, identity: str) -> bool:
    """Return whether the holder ran in this pod before; its container has ended then."""
    pod, _, process = identity.rpartition("/")
    holder_pod, _, holder_process = holder.rpartition("/")
    return pod == holder_pod and process != holder_process and bool(pod.partition("/")[2])


def lease_object(
    lease: Lease | None, holder: str, stamp: datetime, timing: LeaseTiming, *, namespace: str, name: str
) -> dict[str, Any]:
    """Return the object to write so that `holder` holds the Lease.

    Args:
        lease: The Lease as read, whose version the write replaces; None to create it.
        holder: Identity of the new leader; empty releases the Lease.
        stamp: Time of the write.
        timing: Times of the election.
        namespace: Namespace of the object.
        name: Name of the object.
    """
    same_holder = lease is not None and lease.holder == holder
    moment = stamp.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    version = {"resourceVersion": lease.version} if lease else {}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name, **version},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(timing.duration_s) if holder else 1,
            "acquireTime": lease.acquired if lease and same_holder else moment,
            "renewTime": moment,
            "leaseTransitions": (lease.transitions + (not same_holder and bool(holder))) if lease else 0,
        },
    }


class Leadership:
    """A candidate of a leader election.

    Args:
        cluster: Client of the API server.
        identity: Identity of this process: `<pod>/<pod uid>/<process>`.
        namespace: Namespace of the Lease.
        name: Name of the Lease.
        timing: Times of the election.
        clock: Wall clock for the timestamps in the Lease.

    Example:
        leadership = Leadership(client, identity="a/uid/1", namespace="ml", name="operator", timing=LeaseTiming())
        await leadership.acquire()
        work = asyncio.create_task(lead())
        try:
            await leadership.hold()  # returns when the Lease is lost
        finally:
            work.cancel()
            await leadership.release()
    """

    def __init__(
        self,
        cluster: ApiClient,
        *,
        identity: str,
        namespace: str,
        name: str,
        timing: LeaseTiming,
        clock: Clock = utc_now,
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._namespace = namespace
        self._name = name
        self._timing = timing
        self._clock = clock
        self._path = path_to("coordination.k8s.io", "v1", "leases", namespace=namespace, name=name)
        self._observation: LeaseObservation | None = None
        self._renewed_at = -math.inf

    async def acquire(self) -> None:
        """Wait until this candidate is the leader."""
        while not await self._attempt():  # noqa: ASYNC110 - the other candidates are in other processes
            await asyncio.sleep(self._timing.retry_s)

    async def hold(self) -> None:
        """Renew the Lease; return once it is lost or was not renewed within the deadline."""
        deadline_s = self._timing.renew_deadline_s
        try:
            async with asyncio.timeout_at(self._renewed_at + deadline_s) as limit:
                while not self._is_lost():
                    await asyncio.sleep(self._timing.retry_s)
                    if await self._attempt():
                        limit.reschedule(self._renewed_at + deadline_s)
        except TimeoutError:
            _log.warning(
                "Lease %(lease)s: not renewed for %(seconds)g s; this replica stops leading",
                {"lease": self._name, "seconds": deadline_s},
            )

    async def release(self) -> None:
        """Release the Lease if this candidate holds it; another takes over at once.

        Raises:
            ClusterError: The write failed; the Lease then expires after its duration.
        """
        lease = await self._read()
        if lease and lease.holder == self._identity:
            await self._cluster.replace(self._path, self._body(lease, ""))

    def _is_lost(self) -> bool:
        lease = self._observation.lease if self._observation else None
        if lease is None or lease.holder == self._identity:
            return False
        _log.warning(
            "Lease %(lease)s: lost; the holder is now %(holder)r", {"lease": self._name, "holder": lease.holder}
        )
        return True

    async def _attempt(self) -> bool:
        """Read the Lease and take or renew it if allowed; return whether it was written."""
        try:
            return await self._read_and_write()
        except Conflict:
            return False  # another candidate was faster
        except ClusterError as error:
            _log.warning("Lease %(lease)s: cannot read or write: %(error)s", {"lease": self._name, "error": error})
            return False

    async def _read_and_write(self) -> bool:
        lease = await self._read()
        now = asyncio.get_running_loop().time()
        self._observation = observe(self._observation, lease, now)
        if decide(self._observation, self._identity, now, self._timing) is LeaseStep.WAIT:
            return False
        body = self._body(lease, self._identity)
        if lease is None:
            await self._cluster.create(self._path.rpartition("/")[0], body, timeout_s=self._timing.call_timeout_s)
        else:
            await self._cluster.replace(self._path, body, timeout_s=self._timing.call_timeout_s)
        self._renewed_at = now
        self._observation = None
        return True

    async def _read(self) -> Lease | None:
        try:
            return Lease.of(await self._cluster.get(self._path, timeout_s=self._timing.call_timeout_s))
        except NotFound:
            return None

    def _body(self, lease: Lease | None, holder: str) -> dict[str, Any]:
        return lease_object(lease, holder, self._clock(), self._timing, namespace=self._namespace, name=self._name)
