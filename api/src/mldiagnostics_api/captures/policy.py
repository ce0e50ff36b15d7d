"""The administrator's limits on captures, parsed from one JSON document."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from mldiagnostics.capture.model import MAX_TRACE_BYTES
from mldiagnostics.locations import BUCKET_SCHEMES

from mldiagnostics_api.captures.location import OWN_NAMESPACE, Location, Medium
from mldiagnostics_api.formats import enumerated
from mldiagnostics_api.names import DEFAULT_ALLOWED_PORTS
from mldiagnostics_api.ranges import Ranges

ANY_NAMESPACE: Final = "*"
OPERATOR_VOLUME: Final = Location(Medium.VOLUME, "")
OWN_DIRECTORY: Final = Location(Medium.VOLUME, "", (OWN_NAMESPACE,))
EVERY_BUCKET: Final = tuple(Location(Medium.BUCKET, f"{scheme}://") for scheme in BUCKET_SCHEMES)
MAX_DURATION_MS: Final = 3_600_000

Prefixes = Mapping[str, tuple[Location, ...]]
"""Allowed prefixes by namespace; the prefixes of `*` apply to every namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The administrator's limits; the defaults are the chart's.

    The admission policy checks the same limits; the operator checks again because the policy may not be installed.
    """

    default_storage: Location | None = OPERATOR_VOLUME
    """Root for captures without a location; None refuses them."""
    allowed_storage: Prefixes = field(default_factory=lambda: {ANY_NAMESPACE: (OWN_DIRECTORY,)})
    """Prefixes that captures may name: buckets, directories of the operator's volume, and paths in the pod."""
    strict_tenancy: bool = False
    """Whether a bucket must be listed in `allowed_storage`; otherwise every bucket is allowed."""
    allowed_ports: Ranges = field(default_factory=lambda: Ranges.parse(DEFAULT_ALLOWED_PORTS))
    cross_namespaces: frozenset[str] = frozenset()
    """Namespaces whose pods may be captured by objects of another namespace; `*` allows all."""
    host_network: bool = False
    """Whether pods with host network may be captured."""
    max_duration_ms: int = MAX_DURATION_MS
    max_deadline_s: int = 7200
    """Upper limit of `deadlineSeconds`; the default deadline follows from the duration, which has its own limit."""
    max_wait_s: int = 3600
    """Upper limit of `waitForPodsSeconds`."""
    captures_per_namespace: int = 4
    captures_total: int = 16
    waiting_per_namespace: int = 16
    max_trace_bytes: int = MAX_TRACE_BYTES
    diagnoses: bool = True
    """Whether captures that do not say it are diagnosed."""
    automatic_captures_per_run: int = 48
    """Automatic captures of one run in any 24 hours, by all schedules of its namespace."""
    automatic_captures_per_namespace: int = 200
    automatic_bytes_per_namespace: int | None = 100 * 2**30
    """Bytes of the automatic captures of a namespace in any 24 hours."""
    schedules_per_namespace: int = 100
    ttl_s: int | None = None
    """Seconds after which finished captures are deleted by default; None keeps them."""

    @classmethod
    def parse(cls, document: str) -> Self:
        """Parse the JSON document of the chart; absent keys keep their default.

        Raises:
            ValueError: A key is unknown or a value invalid; the message lists all of them.
        """
        try:
            raw = json.loads(document)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error
        if not isinstance(raw, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004  # one error type for a bad document
        values: dict[str, Any] = {}
        faults: list[str] = []
        for key, value in raw.items():
            if key not in _READERS:
                faults.append(f"{key}: unknown; use one of {', '.join(sorted(_READERS))}")
                continue
            name, reader = _READERS[key]
            try:
                values[name] = reader(value)
            except (ValueError, TypeError) as error:
                faults.append(f"{key}: {error}")
        if faults:
            raise ValueError("; ".join(faults))
        return cls(**values)

    def may_store(self, location: Location, namespace: str) -> bool:
        """Return whether captures of the namespace may use the location."""
        return any(location.within(prefix) for prefix in self.prefixes(namespace))

    def storage_refusal(self, location: Location, namespace: str) -> str:
        """Return why the namespace may not use the location; empty if it may."""
        prefixes = self.prefixes(namespace)
        if any(map(location.within, prefixes)):
            return ""
        allowed = enumerated([str(prefix) for prefix in prefixes]) or "nothing"
        every_bucket = ", or to set policy.strictTenancy=false, which allows every bucket"
        return (
            f"storageLocation '{location}': not allowed for namespace '{namespace}', which may use {allowed}; "
            "use one of these, or ask the administrator to add it to policy.allowedStorage"
            f"{every_bucket if location.medium is Medium.BUCKET else ''}"
        )

    def prefixes(self, namespace: str) -> tuple[Location, ...]:
        """Return the prefixes that the namespace may use."""
        listed = (*self.allowed_storage.get(ANY_NAMESPACE, ()), *self.allowed_storage.get(namespace, ()))
        own = (prefix.of_namespace(namespace) for prefix in listed)
        return tuple(dict.fromkeys(own if self.strict_tenancy else (*own, *EVERY_BUCKET)))

    def may_capture(self, *, object_namespace: str, pod_namespace: str) -> bool:
        """Return whether an object may capture pods of a namespace; its own is allowed."""
        return object_namespace == pod_namespace or bool({ANY_NAMESPACE, pod_namespace} & self.cross_namespaces)


def _root(value: Any) -> Location | None:
    return Location.parse(_text(value)) if value else None


def _prefixes(value: Any) -> Prefixes:
    if not isinstance(value, dict):
        raise TypeError('not an object such as {"namespace": ["prefix"]}')
    return {_text(namespace): tuple(Location.prefix(text) for text in _texts(value[namespace])) for namespace in value}


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("not a list of strings")
    return [_text(item) for item in value]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


def _automatic(value: Any) -> bool:
    if value not in ("Auto", "Off"):
        raise ValueError(f"{value!r} is not Auto or Off")
    return bool(value == "Auto")


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 1:
        raise ValueError(f"{value!r} is not a whole number of at least 1")
    return int(value)


def _ports(value: Any) -> Ranges:
    ports = Ranges.parse(",".join(str(item) for item in value) if isinstance(value, list) else str(value))
    if any(low < 1 or high > 65535 for low, high in ports.spans):
        raise ValueError(f"'{ports}' has ports outside 1-65535")
    return ports


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "defaultStorage": ("default_storage", _root),
    "allowedStorage": ("allowed_storage", _prefixes),
    "strictTenancy": ("strict_tenancy", _switch),
    "allowedPorts": ("allowed_ports", _ports),
    "crossNamespaces": ("cross_namespaces", lambda value: frozenset(_texts(value))),
    "hostNetwork": ("host_network", _switch),
    "maxDurationSeconds": ("max_duration_ms", lambda value: 1000 * _positive(value)),
    "maxDeadlineSeconds": ("max_deadline_s", _positive),
    "maxWaitForPodsSeconds": ("max_wait_s", _positive),
    "capturesPerNamespace": ("captures_per_namespace", _positive),
    "capturesTotal": ("captures_total", _positive),
    "waitingPerNamespace": ("waiting_per_namespace", _positive),
    "maxTraceBytes": ("max_trace_bytes", _positive),
    "automaticCapturesPerRun": ("automatic_captures_per_run", _positive),
    "automaticCapturesPerNamespace": ("automatic_captures_per_namespace", _positive),
    "automaticBytesPerNamespace": (
        "automatic_bytes_per_namespace",
        lambda value: None if value is None else _positive(value),
    ),
    "schedulesPerNamespace": ("schedules_per_namespace", _positive),
    "diagnosis": ("diagnoses", _automatic),
    "ttlSecondsAfterFinished": ("ttl_s", lambda value: None if value is None else _positive(value)),
}
