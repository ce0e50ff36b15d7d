"""PyTorch on CPU and CUDA: Kineto's events, as an XSpace that XProf opens.

Uses `torch.autograd.profiler.profile`, which is below `torch.profiler`: the latter imports the compiler on its first
start, which takes seconds of the training thread. Kineto's events are not public API; tested up to torch 2.15.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from mldiagnostics.profiling.recorder import Busy, CannotRecord
from mldiagnostics.profiling.xspace import HOST_PLANE, XSpaceLine, encode, gpu_plane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.profiling.service import ProfilerService


class TorchRecorder:
    """Records PyTorch on all threads of this process and on its CUDA devices."""

    framework = "PyTorch"
    version = torch.__version__

    def start(self) -> TorchRecording:
        """See `TraceRecorder.start`; never initialises CUDA."""
        if getattr(torch.autograd.profiler, "_is_profiler_enabled", False):
            raise Busy("another torch.profiler session is active")  # a second start would cancel it
        return TorchRecording(_device())

    def serve(self, port: int) -> ProfilerService:
        """See `TraceRecorder.serve`; PyTorch has no server of its own."""
        from mldiagnostics.profiling.service import ProfilerService  # noqa: PLC0415 - needs the extra `capture`

        return ProfilerService(self, port)


class TorchRecording:
    """A recording by Kineto; `device` is the index of the process's GPU or None."""

    def __init__(self, device: int | None) -> None:
        self._device = device
        self._profile = torch.autograd.profiler.profile(
            use_kineto=True, use_device=None if device is None else "cuda", experimental_config=_all_threads()
        )
        self._start_ns = time.time_ns()
        self._profile.__enter__()

    def stop(self) -> bytes:
        """See `TraceRecording.stop`."""
        # A new thread uses device 0, where synchronizing would allocate memory on another rank's GPU.
        with contextlib.nullcontext() if self._device is None else torch.cuda.device(self._device):
            self._profile.__exit__(None, None, None)
        stop_ns = time.time_ns()
        results: Any = self._profile.kineto_results
        if results is None:
            raise CannotRecord("PyTorch's profiler returned no trace; start no other torch.profiler session meanwhile")
        planes = _planes(results.events(), _thread_names())
        return encode(planes, host=socket.gethostname(), start_ns=self._start_ns, stop_ns=stop_ns)


def _device() -> int | None:
    """Return the index of the GPU that this process uses."""
    if not torch.cuda.is_initialized():
        return None
    devices = range(torch.cuda.device_count())
    return next((index for index in devices if torch._C._cuda_hasPrimaryContext(index)), None)  # noqa: SLF001


def _all_threads() -> Any:
    """Return the option to record all threads, not only the one that starts."""
    from torch._C._profiler import _ExperimentalConfig  # noqa: PLC0415 - not in all versions

    try:
        return _ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        raise CannotRecord(f"PyTorch {torch.__version__} records single threads only; upgrade it") from None


def _planes(events: list[Any], threads: Mapping[int, str]) -> dict[str, dict[int, XSpaceLine]]:
    """Group Kineto's events by thread on the host and by stream on each device."""
    planes: dict[str, dict[int, XSpaceLine]] = defaultdict(dict)
    for event in events:
        row = event.device_resource_id()
        if event.device_type() == torch.autograd.DeviceType.CPU:
            plane, name = HOST_PLANE, threads.get(row, f"thread {row}")
        else:
            plane, name = gpu_plane(event.device_index()), f"stream {row}"
        line = planes[plane].setdefault(row, XSpaceLine(name))
        line.events.append((event.name(), event.start_ns(), event.duration_ns()))
    return planes


def _thread_names() -> dict[int, str]:
    return {thread.native_id: thread.name for thread in threading.enumerate() if thread.native_id is not None}
