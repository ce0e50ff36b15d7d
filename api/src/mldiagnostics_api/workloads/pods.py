"""The fields of a pod that captures need, parsed from the API object."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final, Self

from mldiagnostics.capture import command_buffers

from mldiagnostics_api.names import (
    OPT_IN_LABEL,
    PROFILER_PORT_PREFIX,
    PROFILER_PORTS_ANNOTATION,
    RUN_CREATED_ANNOTATION,
)
from mldiagnostics_api.workloads.kinds import COMPLETION_INDEX, Object, kept_labels
from mldiagnostics_api.workloads.owners import ObjectReference, WorkloadRun, lone_run
from mldiagnostics_api.workloads.variables import PEER_METADATA

FINISHED_PHASES: Final = frozenset({"Succeeded", "Failed"})
MAX_CONTAINERS: Final = 64
"""Containers of a pod that are kept; further ones cannot be captured."""
MAX_PROFILER_PORTS: Final = 64
"""Profiler ports of a pod or of a container; the default policy allows 17."""
PORTS_LENGTH: Final = 512
"""Length of an annotation with profiler ports; 64 ports of five digits need 383 characters."""
_INJECTED_LENGTH: Final = 65_536
_FLAGS_LENGTH: Final = 65_536
_GPU: Final = "nvidia.com/"
"""Start of the names of the resources that are GPUs, whole ones and parts."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container that can hold a profiler server."""

    name: str
    profiler_ports: tuple[int, ...]
    """Ports whose name has the prefix, in the order of the template."""
    running: bool
    runs_command_buffers: bool = False
    """Whether it has a GPU, and its variable XLA_FLAGS does not turn off command buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A pod, reduced to a few bounded fields: 10 000 pods need little memory."""

    name: str
    namespace: str
    uid: str
    created: str = ""
    """Time of creation, RFC 3339 in UTC."""
    node: str = ""
    ip: str = ""
    phase: str = "Pending"
    terminating: bool = False
    ready: bool = True
    """Whether the pod is ready; one without the condition counts as ready."""
    host_network: bool = False
    controller: ObjectReference | None = None
    labels: Mapping[str, str]
    """The labels with its position in its workload, and the one that opts in."""
    completion_index: str = ""
    """Index in its Job; older clusters have it only as annotation."""
    published_ports: str | None = None
    """The annotation with the profiler ports, not parsed; one that is too long is cut above `PORTS_LENGTH`."""
    containers: tuple[Container, ...] = ()
    lone_run: WorkloadRun | None = None
    """The run of a pod that has the label and no controller."""

    @classmethod
    def of(cls, pod: Object) -> Self:
        """Parse a pod as the API returns it."""
        metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        labels, annotations = kept_labels(metadata), metadata.get("annotations") or {}
        ports = annotations.get(PROFILER_PORTS_ANNOTATION)
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            created=metadata.get("creationTimestamp") or "",
            node=spec.get("nodeName") or "",
            ip=status.get("podIP") or "",
            phase=status.get("phase") or "Pending",
            terminating="deletionTimestamp" in metadata,
            ready=all(c.get("status") == "True" for c in status.get("conditions") or () if c.get("type") == "Ready"),
            host_network=bool(spec.get("hostNetwork")),
            controller=ObjectReference.to_controller(metadata, metadata["namespace"]),
            labels=labels,
            completion_index=(labels.get(COMPLETION_INDEX) or annotations.get(COMPLETION_INDEX) or "")[:63],
            published_ports=None if ports is None else ports[: PORTS_LENGTH + 1],
            containers=_containers(spec, status),
            lone_run=_lone_run(metadata, spec, labels, annotations),
        )

    @property
    def finished(self) -> bool:
        """Whether no container will run any more."""
        return self.phase in FINISHED_PHASES

    @property
    def runs_command_buffers(self) -> bool:
        """Whether a profile of a GPU can end one of its processes."""
        return any(container.runs_command_buffers for container in self.containers)

    @property
    def live(self) -> bool:
        """Whether the pod runs or will run."""
        return not self.finished and not self.terminating


def _lone_run(
    metadata: Object, spec: Object, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> WorkloadRun | None:
    created = metadata.get("creationTimestamp")
    if (
        labels.get(OPT_IN_LABEL) != "true"
        or not created
        or ObjectReference.to_controller(metadata, metadata["namespace"])
    ):
        return None
    known = {**_injected_creation_time(spec), **annotations}
    return lone_run(metadata["name"], labels, known, datetime.fromisoformat(created), uid=metadata["uid"])


def _injected_creation_time(spec: Object) -> dict[str, str]:
    """Read the creation time from a variable, in case the annotation was removed."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    values = (entry.get("value") for c in containers for entry in c.get("env") or () if entry["name"] == PEER_METADATA)
    try:
        metadata = json.loads(next(filter(None, values), "{}")[:_INJECTED_LENGTH])
    except (ValueError, RecursionError):
        return {}
    created = metadata.get("creation-timestamp") if isinstance(metadata, dict) else None
    return {RUN_CREATED_ANNOTATION: created} if isinstance(created, str) else {}


def _containers(spec: Object, status: Object) -> tuple[Container, ...]:
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    running = {s["name"] for s in statuses if "running" in (s.get("state") or {})}
    return tuple(
        Container(
            container["name"],
            _profiler_ports(container),
            container["name"] in running,
            runs_command_buffers=_has_gpu(container) and not command_buffers.are_off(_flags(container)),
        )
        for container in [*(spec.get("containers") or ()), *sidecars][:MAX_CONTAINERS]
    )


def _has_gpu(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    return any(name.startswith(_GPU) for name in (*(resources.get("limits") or ()), *(resources.get("requests") or ())))


def _flags(container: Mapping[str, Any]) -> str:
    values = [each.get("value") or "" for each in container.get("env") or () if each["name"] == "XLA_FLAGS"]
    return values[-1][:_FLAGS_LENGTH] if values else ""


def _profiler_ports(container: Mapping[str, Any]) -> tuple[int, ...]:
    ports = container.get("ports") or ()
    named = (p["containerPort"] for p in ports if (p.get("name") or "").startswith(PROFILER_PORT_PREFIX))
    return tuple(islice(named, MAX_PROFILER_PORTS))
