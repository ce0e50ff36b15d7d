"""One leader at a time, by a coordination.k8s.io Lease: a pure decision and the loop around it.

The protocol is that of client-go's leader election: a candidate takes the Lease over only after it has seen it
unchanged for its whole duration on its own clock, so clocks of different machines are never compared; a leader stands
back when it could not renew for a time that is shorter than the duration.
"""

import asyncio
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from mldiagnostics_kube.apiserver import ClusterError, Conflict, NotFound, path_to
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.clock import Clock, utc_now

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """How long a silent leader keeps the Lease, tries to renew it, and pauses between two looks."""

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    @property
    def call_timeout_s(self) -> float:
        """How long one call may take: one that is under way at the renew deadline ends before the duration does."""
        return self.duration_s - self.renew_deadline_s


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease as read: its holder ("" when released), and the version that a write of it must replace."""

    holder: str
    duration_s: float
    version: str
    transitions: int = 0
    acquired: str | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Lease":
        """Read a Lease object; what is missing counts as released."""
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
    """A Lease (None: there is none) and since when, on the local monotonic clock, it has looked like this."""

    lease: Lease | None
    since: float


class LeaseStep(StrEnum):
    """What a candidate does next."""

    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def look(last: LeaseObservation | None, lease: Lease | None, now: float) -> LeaseObservation:
    """Compare what is seen at `now` with what was seen last: the time counts from the last change."""
    return last if last is not None and last.lease == lease else LeaseObservation(lease, now)


def decide(sight: LeaseObservation, me: str, now: float, timing: LeaseTiming) -> LeaseStep:
    """Decide what `me` may do with the Lease at `now`."""
    lease = sight.lease
    if lease is None or not lease.holder or _earlier_self(lease.holder, me):
        return LeaseStep.TAKE
    if lease.holder == me:
        return LeaseStep.RENEW
    silent_s = now - sight.since
    return LeaseStep.TAKE if silent_s >= max(timing.duration_s, lease.duration_s) else LeaseStep.WAIT


def _earlier_self(holder: str, me: str) -> bool:
    """Whether the holder is an earlier process of this very pod; its container has ended, or this one would not run."""
    pod, _, process = me.rpartition("/")
    its_pod, _, its_process = holder.rpartition("/")
    return pod == its_pod and process != its_process and bool(pod.partition("/")[2])


def write(
    lease: Lease | None, holder: str, stamp: datetime, timing: LeaseTiming, *, namespace: str, name: str
) -> dict[str, Any]:
    """Compose the Lease object that makes `holder` hold it ("" releases it), replacing exactly what was read."""
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
    """One candidate: `acquire`, then `hold` until it returns, at last `release`."""

    def __init__(
        self, cluster: ApiClient, *, me: str, namespace: str, name: str, timing: LeaseTiming, clock: Clock = utc_now
    ) -> None:
        self._cluster = cluster
        self._me = me
        self._namespace = namespace
        self._name = name
        self._timing = timing
        self._clock = clock
        self._path = path_to("coordination.k8s.io", "v1", "leases", namespace=namespace, name=name)
        self._sight: LeaseObservation | None = None
        self._renewed_at = -math.inf

    async def acquire(self) -> None:
        """Wait until this candidate leads."""
        while not await self._attempt():  # noqa: ASYNC110 - the other candidates are elsewhere
            await asyncio.sleep(self._timing.retry_s)

    async def hold(self) -> None:
        """Keep the Lease; return once it is lost, or could not be renewed within the deadline."""
        deadline_s = self._timing.renew_deadline_s
        try:
            async with asyncio.timeout_at(self._renewed_at + deadline_s) as limit:
                while not self._taken():
                    await asyncio.sleep(self._timing.retry_s)
                    if await self._attempt():
                        limit.reschedule(self._renewed_at + deadline_s)
        except TimeoutError:
            _log.warning("The Lease %s could not be renewed for %g s", self._name, deadline_s)

    async def release(self) -> None:
        """Let another candidate take over at once; does nothing for one that does not hold the Lease.

        Raises ClusterError if the API server does not take it; the Lease then runs out by itself.
        """
        lease = await self._read()
        if lease and lease.holder == self._me:
            await self._cluster.replace(self._path, self._body(lease, ""))

    def _taken(self) -> bool:
        lease = self._sight.lease if self._sight else None
        if lease is None or lease.holder == self._me:
            return False
        _log.warning("The Lease %s is now held by %s", self._name, lease.holder or "nobody")
        return True

    async def _attempt(self) -> bool:
        """Look once, and write if it is ours to write; True once written."""
        try:
            return await self._look_and_write()
        except Conflict:
            return False  # another was faster; the next look tells who
        except ClusterError as error:
            _log.warning("The Lease %s cannot be reached: %s", self._name, error)
            return False

    async def _look_and_write(self) -> bool:
        lease = await self._read()
        now = asyncio.get_running_loop().time()
        self._sight = look(self._sight, lease, now)
        if decide(self._sight, self._me, now, self._timing) is LeaseStep.WAIT:
            return False
        body = self._body(lease, self._me)
        if lease is None:
            await self._cluster.create(self._path.rpartition("/")[0], body, timeout_s=self._timing.call_timeout_s)
        else:
            await self._cluster.replace(self._path, body, timeout_s=self._timing.call_timeout_s)
        self._renewed_at = now
        self._sight = None
        return True

    async def _read(self) -> Lease | None:
        try:
            return Lease.of(await self._cluster.get(self._path, timeout_s=self._timing.call_timeout_s))
        except NotFound:
            return None

    def _body(self, lease: Lease | None, holder: str) -> dict[str, Any]:
        return write(lease, holder, self._clock(), self._timing, namespace=self._namespace, name=self._name)
