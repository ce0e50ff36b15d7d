"""PyTorch/XLA: XLA's profiler in torch_xla."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch_xla

from mldiagnostics.profiling.recorder import CannotRecord, NativeRecording

if TYPE_CHECKING:
    from mldiagnostics.profiling.service import ProfilerService


class TorchXlaRecorder:
    """Records PyTorch on XLA devices in this process."""

    framework = "PyTorch/XLA"
    version = torch_xla.__version__

    def start(self) -> NativeRecording:
        """See `TraceRecorder.start`."""
        _session().stop()  # a session reports another one only when it is stopped
        return _session()

    def serve(self, port: int) -> ProfilerService:
        """See `TraceRecorder.serve`; torch_xla's own server (2.9) cannot return traces."""
        from mldiagnostics.profiling.service import ProfilerService  # noqa: PLC0415 - needs the extra `capture`

        return ProfilerService(self, port)


def _session() -> NativeRecording:
    try:
        session = torch_xla._XLAC.profiler.TslProfilerSessionWrapper()  # noqa: SLF001 - start_trace would write files
    except AttributeError:
        raise CannotRecord(f"torch_xla {torch_xla.__version__} has no profiler session; upgrade it to 2.9") from None
    return NativeRecording(session, "torch_xla's profiler", "start_trace")
