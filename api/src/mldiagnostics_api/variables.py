"""What a container of a run is told: every variable and its value, from the run's identity and the settings."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from mldiagnostics.identity import cluster_short_name, run_id

from mldiagnostics_api.names import DEFAULT_PORT, GROUP
from mldiagnostics_api.owners import WorkloadRun
from mldiagnostics_api.workloads import WorkloadKind

Variable = dict[str, Any]
"""An entry of a container's `env`."""

CONTROL_PLANE_DIRECTORY: Final = "/var/run/secrets/mldiagnostics"
"""Where the token for the control plane, `token`, and its certificates, `ca.crt`, are in a container."""

PEER_METADATA: Final = "GKE_DIAGON_METADATA"
"""The peer SDK's variable that tells when the workload was created."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_KEY: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionSettings:
    """What the administrator of an installation says; empty where he says nothing."""

    cluster: str
    """Name of the cluster, short or as `projects/…/locations/…/clusters/…`."""
    storage: str = ""
    """Root of the runs' files: `gs://bucket/prefix` or a directory."""
    sinks: tuple[str, ...] = ()
    """URLs as `mldiagnostics.sink_urls` reads them."""
    view_url: str = ""
    control_plane_url: str = ""
    control_plane_ca: str = ""
    """Certificates in PEM that the control plane is trusted by; empty: those that a container trusts anyway."""
    profiler_port: int = DEFAULT_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedIdentity:
    """Which run, of which workload."""

    run_id: str
    cluster: str
    namespace: str
    workload: WorkloadKind
    api_version: str
    name: str
    uid: str
    """Empty while the API server has not made one: a pod that is its own run."""
    created: datetime
    labels: Mapping[str, str]
    """The workload's, without those of this product and those that are no labels."""
    group: str | None = None
    """The CronJob above a Job, or the RayCronJob above a RayJob."""

    @classmethod
    def of(cls, run: WorkloadRun, workload: WorkloadKind, *, cluster: str, namespace: str) -> Self:
        """Identify a run by its workload's metadata. Raises ValueError that says what of it cannot be used."""
        metadata = run.workload["metadata"]
        for what, name in (("namespace", namespace), (workload.kind, metadata.get("name"))):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(f"the name of the {what}, {shown(name)}, is no name of an object")
        if not cluster_short_name(cluster):
            raise ValueError("the cluster has no name: set cluster.name of the chart")
        created = moment(metadata.get("creationTimestamp"))
        return cls(
            run_id=run_id(cluster=cluster, namespace=namespace, kind=workload.kind, name=run.name, created=created),
            cluster=cluster,
            namespace=namespace,
            workload=workload,
            api_version=str(run.workload["apiVersion"]),
            name=run.name,
            uid=str(metadata.get("uid") or ""),
            created=created,
            labels=_legal_labels(metadata.get("labels")),
            group=run.group,
        )


def variables(
    identity: InjectedIdentity,
    settings: InjectionSettings,
    *,
    pod_labels: Mapping[str, str],
    sinks: tuple[str, ...] = (),
    peer_url: str = "",
    labels: bool = True,
) -> tuple[Variable, ...]:
    """List what every container of a pod is told, save the profiler port and the control plane.

    `sinks` replace those of the settings; with `peer_url` the peer SDK reports there; `labels` tells whether the
    workload's labels are told too.
    """
    return (
        _field("MLDIAG_POD_NAME", "metadata.name"),
        _field("MLDIAG_POD_UID", "metadata.uid"),
        _field("MLDIAG_NODE_NAME", "spec.nodeName"),
        _field("MLDIAG_NAMESPACE", "metadata.namespace"),
        _value("MLDIAG_RUN_ID", identity.run_id),
        {"name": "MLDIAG_WORKLOAD", "value": _workload(identity, labels=labels)},
        *_peer_identity(identity, labels=labels),
        *_places(identity.workload, pod_labels),
        *_settings(settings, sinks),
        *(_peer_self_hosted(identity, peer_url) if peer_url else ()),
    )


def profiler_port(port: int) -> Variable:
    """Say on which port the container's first rank is to serve its profiler."""
    return _value("MLDIAG_PROFILER_PORT", str(port))


def control_plane_variables(settings: InjectionSettings) -> tuple[Variable, ...]:
    """List what leads to the control plane; it takes the token in `CONTROL_PLANE_DIRECTORY` as well."""
    url = _value("MLDIAG_CONTROL_PLANE_URL", settings.control_plane_url)
    ca = _value("MLDIAG_CONTROL_PLANE_CA", f"{CONTROL_PLANE_DIRECTORY}/ca.crt")
    return (url, ca) if settings.control_plane_ca else (url,)


def told(identity: InjectedIdentity, settings: InjectionSettings, *, pod_labels: Mapping[str, str]) -> tuple[str, ...]:
    """Name all that a container is told, as far as no annotation and nothing of its own changes it."""
    common = variables(identity, settings, pod_labels=pod_labels)
    ways = control_plane_variables(settings) if settings.control_plane_url else ()
    return tuple(variable["name"] for variable in (*common, profiler_port(settings.profiler_port), *ways))


def moment(text: object) -> datetime:
    """Read a time as the API server writes it, RFC 3339 in UTC. Raises ValueError."""
    if not isinstance(text, str) or not text.endswith("Z"):
        raise ValueError(f"the creation time {shown(text)} is no time like 2026-04-24T03:04:05Z")
    return datetime.fromisoformat(text)


def written(instant: datetime) -> str:
    """Write a time as the API server does; the peer SDK insists on the Z."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def shown(value: object, limit: int = 80) -> str:
    """Quote a foreign value for a message, in ASCII and not too long."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[:limit]}…'"


def _peer_identity(identity: InjectedIdentity, *, labels: bool) -> tuple[Variable, ...]:
    """Write the two variables of the peer SDK, whose keys contain dots and whose labels are one string."""
    identifier = {
        "metadata.name": identity.name,
        "metadata.kind": identity.workload.kind,
        "clustername": identity.cluster,
        "namespace": identity.namespace,
    }
    metadata = {"creation-timestamp": written(identity.created)}
    if labels and identity.labels:
        metadata["associated-labels"] = ",".join(f"{key}={value}" for key, value in identity.labels.items())
    if identity.group:
        metadata["parent-workload"] = identity.group
    return (
        _value("GKE_DIAGON_IDENTIFIER", _json(identifier)),
        _value(PEER_METADATA, _json(metadata)),
    )


def _peer_self_hosted(identity: InjectedIdentity, url: str) -> tuple[Variable, ...]:
    # The peer's own id has no time in it: with the run's id as its workload, a workload made anew is a new run.
    return (
        _value("DIAGON_BASE_URL", url),
        _value("DIAGON_CLUSTER_ID", cluster_short_name(identity.cluster)),
        _value("DIAGON_WORKLOAD_ID", identity.run_id),
        _field("POD_NAMESPACE", "metadata.namespace"),
    )


def _workload(identity: InjectedIdentity, *, labels: bool) -> str:
    """Write the workload as JSON. The kubelet puts in the uid of a pod that is its own workload."""
    told = {
        "apiVersion": identity.api_version,
        "kind": identity.workload.kind,
        "name": identity.name,
        "namespace": identity.namespace,
        "uid": identity.uid,
        "creationTimestamp": written(identity.created),
    }
    text = _literal(_json(told | ({"labels": dict(identity.labels)} if labels else {})))
    return text if identity.uid else text.replace('"uid":""', '"uid":"$(MLDIAG_POD_UID)"', 1)


def _places(workload: WorkloadKind, pod_labels: Mapping[str, str]) -> tuple[Variable, ...]:
    """Point to the labels that tell the pod's place; they may be set after us, and what is not set reads empty."""
    places = workload.places
    told = (
        ("MLDIAG_RANK", places.rank_label(pod_labels)),
        ("MLDIAG_SLICE", places.slice),
        ("MLDIAG_HOST_INDEX", places.host),
        ("MLDIAG_ATTEMPT", places.attempt),
    )
    found = tuple(_field(name, f"metadata.labels['{label}']") for name, label in told if label)
    return found if places.attempt else (*found, _value("MLDIAG_ATTEMPT", "0"))


def _settings(settings: InjectionSettings, sinks: tuple[str, ...]) -> tuple[Variable, ...]:
    told = (
        ("MLDIAG_STORAGE", settings.storage),
        ("MLDIAG_SINKS", ",".join(sinks or settings.sinks)),
        ("MLDIAG_VIEW_URL", settings.view_url),
    )
    return tuple(_value(name, text) for name, text in told if text)


def _field(name: str, path: str) -> Variable:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _value(name: str, text: str) -> Variable:
    return {"name": name, "value": _literal(text)}


def _literal(text: str) -> str:
    """Keep the kubelet from expanding `$(…)` in a value."""
    return text.replace("$", "$$")


def _json(value: Mapping[str, object]) -> str:
    return _ENCODER.encode(value)


def _legal_labels(labels: object) -> dict[str, str]:
    """Take over what can be a label: nothing else survives in the peer's `key=value,key=value`."""
    if not isinstance(labels, Mapping):
        return {}
    return {
        key: value
        for key, value in labels.items()
        if isinstance(key, str) and isinstance(value, str) and not key.startswith(f"{GROUP}/")
        if _LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)
    }
