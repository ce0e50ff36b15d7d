"""Profiler ports of a pod: of its annotation, else of its container ports."""

from mldiagnostics_api.formats import quote
from mldiagnostics_api.names import PROFILER_PORTS_ANNOTATION
from mldiagnostics_api.workloads.pods import MAX_PROFILER_PORTS, PORTS_LENGTH, PodView


def published_ports(pod: PodView, container: str | None = None) -> tuple[int, ...]:
    """Return the ports by local rank; empty if the pod publishes none.

    Args:
        pod: The pod.
        container: Container whose ports count; None for all.

    Raises:
        ValueError: The annotation is invalid.
    """
    if pod.published_ports is not None:
        return _annotated(pod.published_ports)
    return tuple(dict.fromkeys(p for c in pod.containers if container in (None, c.name) for p in c.profiler_ports))


def _annotated(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if len(text) > PORTS_LENGTH or len(parts) > MAX_PROFILER_PORTS:
        raise ValueError(
            f"annotation {PROFILER_PORTS_ANNOTATION}: longer than {MAX_PROFILER_PORTS} ports or {PORTS_LENGTH} "
            "characters; list one port for each rank in the pod"
        )
    ports = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) <= 5]
    if len(set(ports)) < len(parts) or not all(1 <= port <= 65535 for port in ports):
        raise ValueError(
            f"annotation {PROFILER_PORTS_ANNOTATION}: {quote(text)} is not a list of distinct ports such as "
            "'9999,10000'"
        )
    return tuple(ports)
