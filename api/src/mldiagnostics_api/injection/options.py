"""Injection options in annotations of pod, workload and namespace."""

import re
from dataclasses import dataclass
from typing import Final, Self

from mldiagnostics.capture.addresses import MAX_PORT
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sink_urls import parse_sinks

from mldiagnostics_api.formats import quote
from mldiagnostics_api.injection.shape import ContainerShape
from mldiagnostics_api.names import (
    INJECT_CONTAINERS_ANNOTATION,
    PEER_URL_ANNOTATION,
    PROFILER_PORTS_ANNOTATION,
    SINKS_ANNOTATION,
)
from mldiagnostics_api.workloads.matching import Annotations, injection_opt_out

_DEFAULT: Final = "*"
_URL: Final = re.compile(r"https?://[\x21-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionOptions:
    """Options of an injection."""

    opted_out: str = ""
    """Why injection is disabled; empty if it is not."""
    containers: frozenset[str] | None = None
    """None for the default containers."""
    sinks: tuple[str, ...] = ()
    peer_url: str = ""
    port: int | None = None

    @classmethod
    def of(cls, *, pod: Annotations, workload: Annotations, namespace: Annotations) -> Self:
        """Parse the options from annotations.

        Raises:
            ValueError: An annotation is invalid; the message names it and its value.
        """
        chosen = pod.get(INJECT_CONTAINERS_ANNOTATION) or workload.get(INJECT_CONTAINERS_ANNOTATION) or ""
        sinks = next((text for a in (pod, workload, namespace) if (text := a.get(SINKS_ANNOTATION))), "")
        url = pod.get(PEER_URL_ANNOTATION) or workload.get(PEER_URL_ANNOTATION) or ""
        if url and not _URL.fullmatch(url):
            raise ValueError(f"annotation {PEER_URL_ANNOTATION}: {quote(url)} is not a URL such as http://host:8080")
        return cls(
            opted_out=injection_opt_out(pod=pod, workload=workload, namespace=namespace),
            containers=frozenset(_listed(chosen)) or None,
            sinks=_sinks(sinks),
            peer_url=url,
            port=_port(pod.get(PROFILER_PORTS_ANNOTATION, "")),
        )

    def chooses(self, container: ContainerShape) -> bool:
        """Return whether a container is chosen; init containers only by name."""
        if self.containers is None:
            return container.usual
        return container.name in self.containers or (container.usual and _DEFAULT in self.containers)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _sinks(text: str) -> tuple[str, ...]:
    try:
        return parse_sinks(text)
    except ConfigurationError as fault:
        raise ValueError(f"annotation {SINKS_ANNOTATION}: {fault}") from fault


def _port(ports: str) -> int | None:
    """Return the first published port; the operator reports invalid ones."""
    first = ports.partition(",")[0].strip()
    port = int(first) if first.isascii() and first.isdecimal() and len(first) <= 5 else 0
    return port if 1 <= port <= MAX_PORT else None
