"""The environment variables of a run's containers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from mldiagnostics.capture.addresses import DEFAULT_PORT
from mldiagnostics.identity import cluster_short_name, run_id

from mldiagnostics_api.formats import format_time, parse_time, quote
from mldiagnostics_api.names import GROUP
from mldiagnostics_api.workloads.kinds import WorkloadKind
from mldiagnostics_api.workloads.owners import WorkloadRun

Variable = dict[str, Any]
"""An entry of a container's `env`."""

CONTROL_PLANE_DIRECTORY: Final = "/var/run/secrets/mldiagnostics"
"""Directory in a container with the control plane's `token` and certificates `ca.crt`."""

PEER_METADATA: Final = "GKE_DIAGON_METADATA"
"""The peer SDK's variable with the creation time of the workload."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_KEY: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionSettings:
    """Settings of an installation; empty if not set."""

    cluster: str
    """Name of the cluster, short or as `projects/…/locations/…/clusters/…`."""
    storage: str = ""
    """Root of the runs' files: `s3://bucket/prefix` or a directory."""
    sinks: tuple[str, ...] = ()
    """Sink URLs, see `mldiagnostics.sink_urls`."""
    view_url: str = ""
    control_plane_url: str = ""
    control_plane_ca: str = ""
    """Certificates of the control plane in PEM; empty uses the container's own."""
    profiler_port: int = DEFAULT_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedIdentity:
    """A run and its workload."""

    run_id: str
    cluster: str
    namespace: str
    workload: WorkloadKind
    api_version: str
    name: str
    uid: str
    """Empty for a pod that is its own run, because it has no uid during admission."""
    created: datetime
    labels: Mapping[str, str]
    """Valid labels of the workload, without those of this product."""
    group: str | None = None
    """The CronJob above a Job, or the RayCronJob above a RayJob."""

    @classmethod
    def of(cls, run: WorkloadRun, workload: WorkloadKind, *, cluster: str, namespace: str) -> Self:
        """Return the identity of a run from its workload's metadata.

        Raises:
            ValueError: A part of the identity is missing or invalid.
        """
        metadata = run.workload["metadata"]
        for kind, name in (("namespace", namespace), (workload.kind, metadata.get("name"))):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(f"{kind}: {quote(name)} is not a valid object name")
        if not cluster_short_name(cluster):
            raise ValueError("cluster name: not set; set cluster.name of the chart")
        created = parse_time(metadata.get("creationTimestamp"))
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
    """Return the common variables of a pod's containers.

    Args:
        identity: The run.
        settings: Settings of the webhook.
        pod_labels: Labels of the pod.
        sinks: Sinks in place of those of the settings.
        peer_url: Control plane of the peer SDK; empty omits the peer's variables.
        labels: Whether the workload's labels are included.
    """
    return (
        _field("MLDIAG_POD_NAME", "metadata.name"),
        _field("MLDIAG_POD_UID", "metadata.uid"),
        _field("MLDIAG_NODE_NAME", "spec.nodeName"),
        _field("MLDIAG_NAMESPACE", "metadata.namespace"),
        _value("MLDIAG_RUN_ID", identity.run_id),
        {"name": "MLDIAG_WORKLOAD", "value": _workload(identity, labels=labels)},
        *_peer_identity(identity, labels=labels),
        *_position(identity.workload, pod_labels),
        *_settings(settings, sinks),
        *(_peer_self_hosted(identity, peer_url) if peer_url else ()),
    )


def profiler_port(port: int) -> Variable:
    """Return the variable with the profiler port of the container's first rank."""
    return _value("MLDIAG_PROFILER_PORT", str(port))


def control_plane_variables(settings: InjectionSettings) -> tuple[Variable, ...]:
    """Return the variables of the control plane; its token is a file."""
    url = _value("MLDIAG_CONTROL_PLANE_URL", settings.control_plane_url)
    ca = _value("MLDIAG_CONTROL_PLANE_CA", f"{CONTROL_PLANE_DIRECTORY}/ca.crt")
    return (url, ca) if settings.control_plane_ca else (url,)


def variable_names(
    identity: InjectedIdentity, settings: InjectionSettings, *, pod_labels: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the names of all variables of a container without own values."""
    common = variables(identity, settings, pod_labels=pod_labels)
    control_plane = control_plane_variables(settings) if settings.control_plane_url else ()
    return tuple(variable["name"] for variable in (*common, profiler_port(settings.profiler_port), *control_plane))


def _peer_identity(identity: InjectedIdentity, *, labels: bool) -> tuple[Variable, ...]:
    """Return the two variables of the peer SDK, in its own JSON format."""
    identifier = {
        "metadata.name": identity.name,
        "metadata.kind": identity.workload.kind,
        "clustername": identity.cluster,
        "namespace": identity.namespace,
    }
    metadata = {"creation-timestamp": format_time(identity.created)}
    if labels and identity.labels:
        metadata["associated-labels"] = ",".join(f"{key}={value}" for key, value in identity.labels.items())
    if identity.group:
        metadata["parent-workload"] = identity.group
    return (
        _value("GKE_DIAGON_IDENTIFIER", _json(identifier)),
        _value(PEER_METADATA, _json(metadata)),
    )


def _peer_self_hosted(identity: InjectedIdentity, url: str) -> tuple[Variable, ...]:
    # The peer's own id does not include the creation time; with the run id, a recreated workload is a new run.
    return (
        _value("DIAGON_BASE_URL", url),
        _value("DIAGON_CLUSTER_ID", cluster_short_name(identity.cluster)),
        _value("DIAGON_WORKLOAD_ID", identity.run_id),
        _field("POD_NAMESPACE", "metadata.namespace"),
    )


def _workload(identity: InjectedIdentity, *, labels: bool) -> str:
    """Return the workload as JSON; the kubelet expands the uid if it is the pod."""
    workload = {
        "apiVersion": identity.api_version,
        "kind": identity.workload.kind,
        "name": identity.name,
        "namespace": identity.namespace,
        "uid": identity.uid,
        "creationTimestamp": format_time(identity.created),
    }
    text = _literal(_json(workload | ({"labels": dict(identity.labels)} if labels else {})))
    return text if identity.uid else text.replace('"uid":""', '"uid":"$(MLDIAG_POD_UID)"', 1)


def _position(workload: WorkloadKind, pod_labels: Mapping[str, str]) -> tuple[Variable, ...]:
    """Refer to the labels with the pod's position; absent labels read as empty."""
    labels = workload.rank_labels
    references = (
        ("MLDIAG_RANK", labels.rank_label(pod_labels)),
        ("MLDIAG_SLICE", labels.slice),
        ("MLDIAG_HOST_INDEX", labels.host),
        ("MLDIAG_ATTEMPT", labels.attempt),
    )
    position = tuple(_field(name, f"metadata.labels['{label}']") for name, label in references if label)
    return position if labels.attempt else (*position, _value("MLDIAG_ATTEMPT", "0"))


def _settings(settings: InjectionSettings, sinks: tuple[str, ...]) -> tuple[Variable, ...]:
    values = (
        ("MLDIAG_STORAGE", settings.storage),
        ("MLDIAG_SINKS", ",".join(sinks or settings.sinks)),
        ("MLDIAG_VIEW_URL", settings.view_url),
    )
    return tuple(_value(name, text) for name, text in values if text)


def _field(name: str, path: str) -> Variable:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _value(name: str, text: str) -> Variable:
    return {"name": name, "value": _literal(text)}


def _literal(text: str) -> str:
    """Escape `$`, so that the kubelet does not expand `$(…)` in a value."""
    return text.replace("$", "$$")


def _json(value: Mapping[str, object]) -> str:
    return _ENCODER.encode(value)


def _legal_labels(labels: object) -> dict[str, str]:
    """Return the valid labels: others would break the peer's `key=value,key=value`."""
    if not isinstance(labels, Mapping):
        return {}
    return {
        key: value
        for key, value in labels.items()
        if isinstance(key, str) and isinstance(value, str) and not key.startswith(f"{GROUP}/")
        if _LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value)
    }
