"""Look up project, zone, accelerator and cluster of this Google Cloud machine."""

from __future__ import annotations

import os
from dataclasses import dataclass

MACHINE_TYPE_TO_ACCELERATOR_TYPE_MAPPING = {
    "tpu7x": "TPU-7x",
    "ct6e": "TPU-v6e",
    "ct5p": "TPU-v5p",
    "ct5lp": "TPU-v5e",
    "ct5l": "TPU-v5e",
    "ct4p": "TPU-v4p",
    "ct3p": "TPU-v3",
    "ct3": "TPU-v3",
    "tpu-v2": "TPU-v2",
    "tpu": "TPU",
    "a3-edgegpu": "NVIDIA-H100",
    "a3-highgpu": "NVIDIA-H100",
    "a3-megagpu": "NVIDIA-H100",
    "a3-ultragpu": "NVIDIA-H200",
    "a2": "NVIDIA-A100",
    "gpu": "GPU",
}
"""Part of a machine type's name -> its accelerator; the first match counts."""

_LOOK_UP_S = 1.0
"""Longest wait for the metadata server, in seconds."""


@dataclass
class GCPOptions:
    """Options of the upload to Cloud Monitoring; None is looked up on this machine.

    Attributes:
        project_id: Google Cloud project.
        location: zone or region.
        replica_id: number of the replica, as text.
        acc_type: accelerator type, such as `TPU-v5e`.
        cluster_name: GKE cluster.
        enable_gcp_goodput_metrics: send goodput and badput.
        enable_gcp_step_deviation_metrics: send step deviations.
    """

    project_id: str | None = None
    location: str | None = None
    replica_id: str = "0"
    acc_type: str | None = None
    cluster_name: str | None = None
    enable_gcp_goodput_metrics: bool = True
    enable_gcp_step_deviation_metrics: bool = True


def get_gcp_metadata(category: str, attribute: str, timeout: float = 5, retries: int = 3) -> str | None:  # noqa: ARG001
    """Return a value of the metadata server, None without a response within 1 s.

    Args:
        category: for example `instance`.
        attribute: for example `zone`.
        timeout: seconds; values above 1 count as 1.
        retries: accepted and ignored: a machine outside Google Cloud would wait for each of them.
    """
    from mldiagnostics.cloud import metadata  # noqa: PLC0415 - the options alone do without

    try:
        return metadata(f"{category}/{attribute}", env=os.environ, timeout_s=min(timeout, _LOOK_UP_S))
    except Exception:  # noqa: BLE001 - a monitor must not fail because of a look-up
        return None


def get_gcp_project_id() -> str | None:
    """Return the id of the Google Cloud project, None if unknown."""
    from mldiagnostics.cloud import CloudEnvironment  # noqa: PLC0415 - the options alone do without

    return CloudEnvironment(env=os.environ).project(_LOOK_UP_S)


def get_node_zone() -> str | None:
    """Return the zone of this machine, such as `us-east5-b`; None if unknown."""
    zone = get_gcp_metadata("instance", "zone")
    return zone.rpartition("/")[2] or None if zone else None


def get_accelerator_type() -> str:
    """Return the accelerator of this machine, `UNKNOWN` if unknown."""
    machine = (get_gcp_metadata("instance", "machine-type") or "").rpartition("/")[2].lower()
    matches = (kind for part, kind in MACHINE_TYPE_TO_ACCELERATOR_TYPE_MAPPING.items() if part in machine)
    return next(matches, "UNKNOWN")


def get_cluster_name() -> str | None:
    """Return the name of the GKE cluster of this machine; None if unknown."""
    return get_gcp_metadata("instance", "attributes/cluster-name")
