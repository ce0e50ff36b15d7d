"""Run ids of workloads, computed in the same way by webhook, operator and SDK."""

from __future__ import annotations

import re
from datetime import timezone
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from datetime import datetime

RUN_LABEL_CHARACTERS = 32
"""Length of a run id in a label value; Kubernetes allows 63 characters, a run id has 64."""

_RUN_ID = re.compile(r"[0-9a-f]{64}")
_UID = re.compile(r"[0-9a-f]{8}-")


def run_id(*, cluster: str, namespace: str, kind: str, name: str, created: datetime) -> str:
    """Return the run id of a workload: 64 lower-case hex digits.

    SHA-256 of `<cluster>_<namespace>_<kind>_<name>_<YYYYMMDD-HHMMSS in UTC>`, the formula of Google's ML Diagnostics
    webhook. `cluster` may be the full `projects/…/clusters/<cluster>` name; `created` is the workload's
    creationTimestamp in any time zone, cut to whole seconds.

    Raises:
        ConfigurationError: a part is empty or `created` has no time zone.
    """
    parts = {"cluster": cluster_short_name(cluster), "namespace": namespace, "kind": kind, "name": name}
    for part, value in parts.items():
        if not value:
            raise ConfigurationError(f"the {part} of {kind} {namespace}/{name} in cluster {cluster!r} is empty")
    if created.tzinfo is None:
        raise ConfigurationError(f"creation time {created.isoformat()} of {kind} {namespace}/{name} has no time zone")
    moment = created.astimezone(timezone.utc).strftime("%Y%m%d-%H%M%S")
    import hashlib  # noqa: PLC0415 - brings OpenSSL, 4 MiB that a process with an injected id never needs

    return hashlib.sha256("_".join((*parts.values(), moment)).encode()).hexdigest()


def cluster_short_name(name: str) -> str:
    """Return the part after the last `/`.

    The cluster of `projects/…/locations/…/clusters/<cluster>`.
    """
    return name.rpartition("/")[2]


def fallback_cluster_name(kube_system_uid: str) -> str:
    """Return a name for a cluster without one: `k8s-` and 8 hex digits.

    The digits are from the uid of namespace kube-system.
    """
    if not _UID.match(kube_system_uid):
        raise ConfigurationError(f"{kube_system_uid!r} is not the uid of a namespace, like 1f0e9a3c-…")
    return f"k8s-{kube_system_uid[:8]}"


def run_label_value(run: str) -> str:
    """Return the value of the label `diagon.gke.io/run` for a run id.

    Its first 32 digits.
    """
    if not _RUN_ID.fullmatch(run):
        raise ConfigurationError(f"{run!r} is not a run id; pass 64 lower-case hex digits")
    return run[:RUN_LABEL_CHARACTERS]
