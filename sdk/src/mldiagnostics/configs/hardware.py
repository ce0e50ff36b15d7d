"""On which hardware a run is done, told by who knows it already: a framework in use, the driver, the environment.

No framework is imported and no backend is initialised, since a program may want to do that later and otherwise.
`device_type`, `num_slices`, `devices_per_slice` and `accelerator_type` are Google's names and always there.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from mldiagnostics.metric_types import AcceleratorType
from mldiagnostics.system.nvml import driver

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN = "unknown"

_PLATFORMS = {
    "tpu": AcceleratorType.TPU,
    "gpu": AcceleratorType.GPU,
    "cuda": AcceleratorType.GPU,
    "rocm": AcceleratorType.GPU,
    "cpu": AcceleratorType.CPU,
}
_SLICES = ("MEGASCALE_NUM_SLICES", "TPU_NUM_SLICES", "NUM_SLICES", "SLICE_COUNT")


def hardware(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what is known by now; it may be more once the framework has found its devices."""
    found = {
        "device_type": UNKNOWN,
        "num_slices": next((environ[name] for name in _SLICES if environ.get(name)), UNKNOWN),
        "devices_per_slice": UNKNOWN,
        "accelerator_type": UNKNOWN,
        "cpu_count": str(os.cpu_count() or UNKNOWN),
    }
    for source in (_of_environment(environ), _of_driver(), _of_torch(), _of_jax()):
        found |= source
    return found


def is_known(found: Mapping[str, str]) -> bool:
    """Tell whether somebody who uses the devices has described them, so that there is no more to come."""
    return found["devices_per_slice"] != UNKNOWN


def _of_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Read what GKE, LeaderWorkerSet and Cloud TPU tell the containers of TPU hosts."""
    if not (kind := environ.get("TPU_ACCELERATOR_TYPE") or environ.get("TPU_TYPE")):
        return {}
    told = {"device_type": kind, "accelerator_type": AcceleratorType.TPU.value}
    if topology := environ.get("TPU_TOPOLOGY"):
        told["topology"] = topology
    if hosts := environ.get("TPU_WORKER_HOSTNAMES"):
        told["hosts_per_slice"] = str(len(hosts.split(",")))
    return told


def _of_driver() -> dict[str, str]:
    """Ask NVIDIA's driver, where it and its Python bindings are."""
    try:
        nvml = driver()
        count = nvml.nvmlDeviceGetCount() if nvml else 0
        if not count:
            return {}
        return {
            "device_type": _text(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(0))),
            "accelerator_type": AcceleratorType.GPU.value,
            "devices_per_host": str(count),
            "driver_version": _text(nvml.nvmlSystemGetDriverVersion()),
        }
    except Exception:  # noqa: BLE001 - a driver in any state: then others tell
        return {}


def _of_torch() -> dict[str, str]:
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return {}
        local = torch.cuda.device_count()
        told = {
            "device_type": str(torch.cuda.get_device_name(0)),
            "accelerator_type": AcceleratorType.GPU.value,
            "devices_per_host": str(local),
            "cuda_version": str(torch.version.cuda),
        }
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            told |= {"device_count": str(distributed.get_world_size()), "num_slices": "1"}
            told["devices_per_slice"] = told["device_count"]
    except Exception:  # noqa: BLE001 - another version of torch, or one half imported
        return {}
    return told


def _of_jax() -> dict[str, str]:
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    jax: Any = sys.modules.get("jax")
    try:
        if jax is None or bridge is None or not bridge.backends_are_initialized():
            return {}
        devices = jax.devices()
        slices = len({getattr(device, "slice_index", 0) for device in devices}) or 1
        return {
            "device_type": str(devices[0].device_kind),
            "accelerator_type": _PLATFORMS.get(devices[0].platform, AcceleratorType.UNKNOWN).value,
            "num_slices": str(slices),
            "devices_per_slice": str(len(devices) // slices),
            "device_count": str(len(devices)),
            "devices_per_host": str(jax.local_device_count()),
            "host_count": str(jax.process_count()),
        }
    except Exception:  # noqa: BLE001 - another version of JAX, or a backend that failed
        return {}


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
