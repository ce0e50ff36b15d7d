"""PyTorch/XLA: XLA's profiler in torch_xla."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch_xla

from mldiagnostics.profiling.recorder import Busy, CannotRecord

if TYPE_CHECKING:
    from mldiagnostics.profiling.service import ProfilerService


class TorchXlaRecorder:
    """Records PyTorch on XLA devices in this process."""

    framework = "PyTorch/XLA"
    version = torch_xla.__version__

    def start(self) -> TorchXlaRecording:
        """See `TraceRecorder.start`."""
        TorchXlaRecording(_session()).stop()  # a session reports another one only when it is stopped
        return TorchXlaRecording(_session())

    def serve(self, port: int) -> ProfilerService:
        """See `TraceRecorder.serve`; torch_xla's own server (2.9) cannot return traces."""
        from mldiagnostics.profiling.service import ProfilerService  # noqa: PLC0415 - needs the extra `capture`

        return ProfilerService(self, port)


class TorchXlaRecording:
    """A session of XLA's profiler."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def stop(self) -> bytes:
        """See `TraceRecording.stop`."""
        try:
            return bytes(self._session.stop())
        except Exception as error:
            if "profiling session active" in str(error):
                raise Busy("another profiling session is active (an on-demand capture or start_trace)") from error
            raise CannotRecord(f"torch_xla's profiler failed: {error}") from error


def _session() -> Any:
    try:
        return torch_xla._XLAC.profiler.TslProfilerSessionWrapper()  # noqa: SLF001 - start_trace would write files
    except AttributeError:
        raise CannotRecord(f"torch_xla {torch_xla.__version__} has no profiler session; upgrade it to 2.9") from None
