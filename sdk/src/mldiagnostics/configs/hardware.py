"""Describe the hardware of a run, by framework, driver and environment.

No framework is imported and no backend is initialised, since the program may do that later in its own way.
`device_type`, `num_slices`, `devices_per_slice` and `accelerator_type` are Google's names and always present.
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
_GPU_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Files of the drivers of NVIDIA, of Windows below Linux, and of AMD."""
_SLICES = ("MEGASCALE_NUM_SLICES", "TPU_NUM_SLICES", "NUM_SLICES", "SLICE_COUNT")


def hardware(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return a description; it grows when the framework has initialised its devices."""
    description = {
        "device_type": UNKNOWN,
        "num_slices": next((environ[name] for name in _SLICES if environ.get(name)), UNKNOWN),
        "devices_per_slice": UNKNOWN,
        "accelerator_type": UNKNOWN,
        "cpu_count": str(os.cpu_count() or UNKNOWN),
    }
    for source in (_of_environment(environ), _of_driver(), _of_torch(), _of_jax()):
        description |= source
    return description


def is_known(description: Mapping[str, str]) -> bool:
    """Return whether the description is complete: a framework has devices."""
    return description["devices_per_slice"] != UNKNOWN


def _of_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Read the variables that GKE, LeaderWorkerSet and Cloud TPU set on TPU hosts."""
    if not (kind := environ.get("TPU_ACCELERATOR_TYPE") or environ.get("TPU_TYPE")):
        return {}
    description = {"device_type": kind, "accelerator_type": AcceleratorType.TPU.value}
    if topology := environ.get("TPU_TOPOLOGY"):
        description["topology"] = topology
    if hosts := environ.get("TPU_WORKER_HOSTNAMES"):
        description["hosts_per_slice"] = str(len(hosts.split(",")))
    return description


def _of_driver() -> dict[str, str]:
    """Read NVIDIA's driver, if its Python bindings are installed."""
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
    except Exception:  # noqa: BLE001 - a driver in any state
        return {}


def _of_torch() -> dict[str, str]:
    torch: Any = sys.modules.get("torch")
    try:
        if torch is None:
            return {}
        if not torch.cuda.is_initialized():
            return _of_torchs_cpu(torch) if _has_only_cpus(torch) else {}
        local = torch.cuda.device_count()
        description = {
            "device_type": str(torch.cuda.get_device_name(0)),
            "accelerator_type": AcceleratorType.GPU.value,
            "devices_per_host": str(local),
            "cuda_version": str(torch.version.cuda),
        }
        return description | _of_torchs_processes(torch)
    except Exception:  # noqa: BLE001 - another version of torch, or one half imported
        return {}


def _has_only_cpus(torch: Any) -> bool:
    """Return whether torch has no accelerator.

    No driver is initialised: a fork would not survive that.
    """
    if not sys.platform.startswith("linux") or "torch_xla" in sys.modules or getattr(torch.version, "xpu", None):
        return False
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1"}
    return hidden or not any(map(os.path.exists, _GPU_FILES))


def _of_torchs_cpu(torch: Any) -> dict[str, str]:
    """Describe the CPU, of which each process is one device."""
    description = {"device_type": "cpu", "accelerator_type": AcceleratorType.CPU.value}
    return description | _of_torchs_processes(torch)


def _of_torchs_processes(torch: Any) -> dict[str, str]:
    """Count the devices, one of each process of an initialised group."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return {}
    count = str(distributed.get_world_size())
    return {"device_count": count, "num_slices": "1", "devices_per_slice": count}


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
