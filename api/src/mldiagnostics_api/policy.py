"""What the administrator allows: limits, ports, namespaces and storage, read from one JSON document."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from mldiagnostics_api.location import Location, Medium
from mldiagnostics_api.names import DEFAULT_ALLOWED_PORTS
from mldiagnostics_api.ranges import Ranges

ANY_NAMESPACE: Final = "*"
OPERATOR_VOLUME: Final = Location(Medium.VOLUME, "")
EVERY_BUCKET: Final = Location(Medium.BUCKET, "")
MAX_DURATION_MS: Final = 3_600_000

Prefixes = Mapping[str, tuple[Location, ...]]
"""Allowed prefixes by namespace; those of `*` hold for every namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The administrator's limits; the defaults are those of an installation without values.

    The same numbers stand in the admission policy; the operator checks again, because that can be absent.
    """

    default_storage: Location | None = OPERATOR_VOLUME
    """Root for captures that name no location; None: they are refused."""
    allowed_storage: Prefixes = field(default_factory=lambda: {ANY_NAMESPACE: (OPERATOR_VOLUME,)})
    """Prefixes that a capture may name: buckets, the operator's volume, and paths in the pod."""
    strict_tenancy: bool = False
    """Whether a bucket must be listed in `allowed_storage`; otherwise every bucket is allowed."""
    allowed_ports: Ranges = field(default_factory=lambda: Ranges.parse(DEFAULT_ALLOWED_PORTS))
    cross_namespaces: frozenset[str] = frozenset()
    """Namespaces whose pods may be captured by objects of another namespace; `*` allows all."""
    host_network: bool = False
    """Whether pods on the host's network may be dialled."""
    max_duration_ms: int = MAX_DURATION_MS
    captures_per_namespace: int = 4
    captures_total: int = 16
    max_trace_bytes: int = 256 * 2**20
    ttl_s: int | None = None
    """Seconds after which finished captures are deleted when the object does not say; None: never."""

    @classmethod
    def parse(cls, document: str) -> Self:
        """Read the JSON document of the chart's ConfigMap; what is absent keeps its default.

        Raises ValueError that lists every fault: unknown keys, wrong types, unreadable locations.
        """
        try:
            raw = json.loads(document)
        except ValueError as error:
            raise ValueError(f"the policy is no JSON: {error}") from error
        if not isinstance(raw, dict):
            raise ValueError("the policy is no JSON object")  # noqa: TRY004  # one error type for a bad document
        values: dict[str, Any] = {}
        faults: list[str] = []
        for key, value in raw.items():
            if key not in _READERS:
                faults.append(f"{key} is unknown; known are {', '.join(sorted(_READERS))}")
                continue
            name, reader = _READERS[key]
            try:
                values[name] = reader(value)
            except (ValueError, TypeError) as error:
                faults.append(f"{key}: {error}")
        if faults:
            raise ValueError("the policy is wrong: " + "; ".join(faults))
        return cls(**values)

    def may_store(self, location: Location, namespace: str) -> bool:
        """Tell whether captures of the namespace may use the location."""
        return any(location.within(prefix) for prefix in self.prefixes(namespace))

    def prefixes(self, namespace: str) -> tuple[Location, ...]:
        """List what the namespace may use, for checks and messages."""
        listed = (*self.allowed_storage.get(ANY_NAMESPACE, ()), *self.allowed_storage.get(namespace, ()))
        return tuple(dict.fromkeys(listed if self.strict_tenancy else (*listed, EVERY_BUCKET)))

    def may_capture(self, *, object_namespace: str, pod_namespace: str) -> bool:
        """Tell whether an object may capture pods of that namespace; its own always."""
        return object_namespace == pod_namespace or bool({ANY_NAMESPACE, pod_namespace} & self.cross_namespaces)


def _root(value: Any) -> Location | None:
    return Location.parse(_text(value)) if value else None


def _prefixes(value: Any) -> Prefixes:
    if not isinstance(value, dict):
        raise TypeError("is no object of namespace: [prefix, …]")
    return {_text(namespace): tuple(Location.prefix(text) for text in _texts(value[namespace])) for namespace in value}


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("is no list of strings")
    return [_text(item) for item in value]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no string")
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 1:
        raise ValueError(f"{value!r} is no whole number of at least 1")
    return int(value)


def _ports(value: Any) -> Ranges:
    ports = Ranges.parse(",".join(str(item) for item in value) if isinstance(value, list) else str(value))
    if any(low < 1 or high > 65535 for low, high in ports.spans):
        raise ValueError(f"{ports} reaches outside 1-65535")
    return ports


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "defaultStorage": ("default_storage", _root),
    "allowedStorage": ("allowed_storage", _prefixes),
    "strictTenancy": ("strict_tenancy", _switch),
    "allowedPorts": ("allowed_ports", _ports),
    "crossNamespaces": ("cross_namespaces", lambda value: frozenset(_texts(value))),
    "hostNetwork": ("host_network", _switch),
    "maxDurationSeconds": ("max_duration_ms", lambda value: 1000 * _positive(value)),
    "capturesPerNamespace": ("captures_per_namespace", _positive),
    "capturesTotal": ("captures_total", _positive),
    "maxTraceBytes": ("max_trace_bytes", _positive),
    "ttlSecondsAfterFinished": ("ttl_s", lambda value: None if value is None else _positive(value)),
}
