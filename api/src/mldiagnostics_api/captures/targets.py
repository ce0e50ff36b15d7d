"""The targets of a capture: pods with rank, port and the reason if skipped."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from itertools import groupby
from types import MappingProxyType
from typing import Final, Self

from mldiagnostics.capture import command_buffers
from mldiagnostics.capture.addresses import DEFAULT_PORT

from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.formats import enumerated
from mldiagnostics_api.names import SkipReason
from mldiagnostics_api.ranges import Ranges
from mldiagnostics_api.reports.reported_profilers import ReportedProfilers
from mldiagnostics_api.v1alpha1 import TargetSelection
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_api.workloads.profiler_ports import published_ports
from mldiagnostics_api.workloads.ranking import natural, order, part_of, slice_of, without_superseded

MAX_TARGETS: Final = 10_000
"""Pods that a capture looks at, and targets that it has; plan and results of 10 000 take about 20 MiB."""
TRANSIENT: Final = frozenset({SkipReason.NOT_FOUND, SkipReason.NOT_READY, SkipReason.NO_IP, SkipReason.TERMINATING})
"""Reasons that waiting may resolve."""
_Fault = tuple[SkipReason | None, str]
_NONE: Final[_Fault] = (None, "")
_UNREPORTED: Final = ReportedProfilers((), frozenset())
_COMMAND_BUFFERS: Final = (
    "a profile of its GPU can end the process, so automatic captures leave it out; add "
    f"{command_buffers.OFF} to XLA_FLAGS in its env, or set tracers.device to 0"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFilter:
    """A filter of targets; None selects all."""

    ranks: Ranges | None = None
    slices: Ranges | None = None
    nodes: frozenset[str] | None = None
    replicated_job: str | None = None
    container: str | None = None
    limit: int | None = None

    @classmethod
    def of(cls, target: TargetSelection | None) -> Self:
        """Parse the filter of a spec.

        Raises:
            ValueError: A field is invalid; the message names it.
        """
        if target is None:
            return cls()
        return cls(
            ranks=_ranges("ranks", target.ranks),
            slices=_ranges("slices", target.slices),
            nodes=frozenset(target.nodes) if target.nodes else None,
            replicated_job=target.replicated_job,
            container=target.container,
            limit=target.limit,
        )

    def matches(self, candidate: "TargetCandidate") -> bool:
        """Return whether a candidate is selected, not considering `limit`."""
        return (
            (self.ranks is None or candidate.rank in self.ranks)
            and (self.slices is None or (candidate.slice is not None and candidate.slice in self.slices))
            and (self.nodes is None or candidate.pod.node in self.nodes)
            and (self.replicated_job is None or part_of(candidate.pod) == self.replicated_job)
        )


class TooManyTargets(Exception):
    """The pods have more than MAX_TARGETS targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCandidate:
    """One rank of one pod; without `skip` it can be contacted at `pod.ip` and `port`."""

    pod: PodView
    rank: int
    """Position in its workload, counted in ranks."""
    slice: int | None
    local_rank: int | None
    """Position in the pod; None if the pod has a single rank."""
    port: int | None
    server_ok: bool = False
    """Whether the host reports a server that a capture cannot freeze."""
    runs_command_buffers: bool = False
    """Whether a profile of its GPU can end its process."""
    skip: SkipReason | None = None
    message: str = ""


def candidates(
    pods: Iterable[PodView],
    *,
    workload: Callable[[PodView], str],
    policy: Policy,
    target_filter: TargetFilter,
    port: int | None,
    reported: Mapping[str, ReportedProfilers] = MappingProxyType({}),
    superseded: bool = False,
    spares_command_buffers: bool = False,
) -> tuple[TargetCandidate, ...]:
    """Rank and filter the pods; return them in the order of workload and rank.

    Pods that run but are not ready are candidates too, because a host that hangs is worth a profile.

    Args:
        pods: The pods.
        workload: Returns the key of a pod's workload; ranks count within a workload.
        policy: Limits of the administrator.
        target_filter: Filter of the spec.
        port: Port of pods that neither report nor publish one.
        reported: Profiler servers that the hosts reported, by pod uid.
        superseded: Keep finished pods that were replaced, because they were requested by name.
        spares_command_buffers: Skip GPUs whose process a profile can end.

    Raises:
        TooManyTargets: The pods have too many targets, before the filter.
    """
    ranked: list[TargetCandidate] = []
    ordered = sorted(pods, key=lambda pod: (natural(workload(pod)), workload(pod), pod.uid))
    for _, group in groupby(ordered, key=workload):
        rank = 0
        for pod in sorted(group if superseded else without_superseded(group), key=order):
            own = reported.get(pod.uid, _UNREPORTED)
            fault = _pod_fault(pod, policy, target_filter.container, spares_command_buffers=spares_command_buffers)
            ranks = _examine(pod, rank, fault, policy, container=target_filter.container, port=port, reported=own)
            ranked += ranks
            rank += len(ranks)
            if len(ranked) > MAX_TARGETS:
                raise TooManyTargets
    return _limited([candidate for candidate in ranked if target_filter.matches(candidate)], target_filter.limit)


def _limited(ranked: list[TargetCandidate], limit: int | None) -> tuple[TargetCandidate, ...]:
    if limit is None:
        return tuple(ranked)
    ready_first = sorted(range(len(ranked)), key=lambda index: (ranked[index].skip is not None, index))
    return tuple(ranked[index] for index in sorted(ready_first[:limit]))


def _examine(
    pod: PodView,
    rank: int,
    fault: _Fault | None,
    policy: Policy,
    *,
    container: str | None,
    port: int | None,
    reported: ReportedProfilers,
) -> list[TargetCandidate]:
    ports: tuple[int, ...] = ()
    try:
        ports = reported.ports or published_ports(pod, container) or (port or DEFAULT_PORT,)
    except ValueError as error:
        fault = fault or (SkipReason.PORT_INVALID, str(error))
    several = len(ports) > 1
    return [
        TargetCandidate(
            pod=pod,
            rank=rank + local_rank,
            slice=slice_of(pod),
            local_rank=local_rank if several else None,
            port=number,
            server_ok=number in reported.safe,
            runs_command_buffers=pod.runs_command_buffers,
            skip=skip,
            message=message,
        )
        for local_rank, number in enumerate(ports or (None,))
        for skip, message in [fault or _port_fault(number, policy) or _readiness_fault(pod, container, number) or _NONE]
    ]


def _pod_fault(pod: PodView, policy: Policy, container: str | None, *, spares_command_buffers: bool) -> _Fault | None:
    """Return a reason that waiting does not resolve."""
    if pod.finished:
        return SkipReason.FINISHED, f"the pod has finished ({pod.phase})"
    if pod.terminating:
        return SkipReason.TERMINATING, "the pod is being deleted"
    if container and container not in (names := [c.name for c in pod.containers]):
        return SkipReason.CONTAINER_NOT_FOUND, f"the pod has no container {container}, it has {enumerated(names)}"
    if pod.host_network and not policy.host_network:
        return (
            SkipReason.HOST_NETWORK_NOT_ALLOWED,
            "the pod uses the host network; ask the administrator to set policy.hostNetwork",
        )
    if spares_command_buffers and pod.runs_command_buffers:
        return SkipReason.COMMAND_BUFFERS_ACTIVE, _COMMAND_BUFFERS
    return None


def _port_fault(port: int | None, policy: Policy) -> _Fault | None:
    if port is not None and port not in policy.allowed_ports:
        return SkipReason.PORT_NOT_ALLOWED, f"port {port} is not one of the allowed ports {policy.allowed_ports}"
    return None


def _readiness_fault(pod: PodView, container: str | None, port: int | None) -> _Fault | None:
    if pod.phase != "Running":
        return SkipReason.NOT_READY, f"the pod is {pod.phase}, not Running" + ("" if pod.node else " (no node yet)")
    waiting = [c.name for c in pod.containers if not c.running and (c.name == container or port in c.profiler_ports)]
    if waiting:
        return SkipReason.NOT_READY, f"container {waiting[0]} is not running"
    if not pod.ip:
        return SkipReason.NO_IP, "the pod has no IP address yet"
    return _address_fault(pod.ip)


def _address_fault(text: str) -> _Fault | None:
    try:
        address = ip_address(text)
    except ValueError:
        return SkipReason.ADDRESS_NOT_ALLOWED, f"{text!r} is not an IP address"
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        return (
            SkipReason.ADDRESS_NOT_ALLOWED,
            f"{text} is a loopback, link-local or multicast address, which is not allowed for a pod",
        )
    return None


def _ranges(name: str, text: str | None) -> Ranges | None:
    if text is None:
        return None
    try:
        return Ranges.parse(text)
    except ValueError as error:
        raise ValueError(f"{name} '{text}': {error}") from error
