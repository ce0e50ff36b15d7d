"""PyTorch on XLA: the same profiler as JAX's, as it lies in torch_xla."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch_xla

from mldiagnostics.profiling.recorder import Busy, CannotRecord

if TYPE_CHECKING:
    from mldiagnostics.profiling.service import ProfilerService


class TorchXlaRecorder:
    """Records whatever PyTorch does on XLA devices in this process."""

    framework = "PyTorch/XLA"
    version = torch_xla.__version__

    def start(self) -> TorchXlaRecording:
        """See `Recorder.start`."""
        TorchXlaRecording(_session()).stop()  # one that has no room says so only when it is stopped
        return TorchXlaRecording(_session())

    def serve(self, port: int) -> ProfilerService:
        """See `Recorder.serve`: torch_xla's own server (2.9) cannot return traces, and looks like one that freezes."""
        from mldiagnostics.profiling.service import ProfilerService  # noqa: PLC0415 - needs the extra `capture`

        return ProfilerService(self, port)


class TorchXlaRecording:
    """A session of XLA's profiler."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def stop(self) -> bytes:
        """See `Recording.stop`."""
        try:
            return bytes(self._session.stop())
        except Exception as error:
            if "profiling session active" in str(error):
                raise Busy("another profiling session (an on-demand capture, start_trace) has the process") from error
            raise CannotRecord(f"torch_xla's profiler failed: {error}") from error


def _session() -> Any:
    try:
        return torch_xla._XLAC.profiler.TslProfilerSessionWrapper()  # noqa: SLF001 - start_trace would write files
    except AttributeError:
        raise CannotRecord(f"torch_xla {torch_xla.__version__} cannot record on its own: upgrade it to 2.9") from None
