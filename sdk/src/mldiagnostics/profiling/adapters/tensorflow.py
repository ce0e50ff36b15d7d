"""TensorFlow: the session below `tf.profiler.experimental`.

`tf.profiler.experimental` keeps a session that failed to start, and then starts no other in the process.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.profiler.internal import _pywrap_profiler

from mldiagnostics.layout import TRACE_SUFFIX
from mldiagnostics.profiling.recorder import Busy, CannotRecord


class TensorFlowRecorder:
    """Records TensorFlow in this process."""

    framework = "TensorFlow"
    version = tf.__version__

    def start(self) -> TensorFlowRecording:
        """See `TraceRecorder.start`."""
        session, folder = _pywrap_profiler.ProfilerSession(), tempfile.TemporaryDirectory(prefix="mldiagnostics-")
        try:
            session.start(folder.name, {})
        except tf.errors.AlreadyExistsError as error:
            folder.cleanup()
            raise Busy("another profiling session is active (an on-demand capture or tf.profiler)") from error
        return TensorFlowRecording(session, folder)

    def serve(self, port: int) -> TensorFlowServer:
        """See `TraceRecorder.serve`."""
        tf.profiler.experimental.server.start(port)
        return TensorFlowServer()


class TensorFlowRecording:
    """A session of TensorFlow's profiler, which writes XSpaces to `folder`."""

    def __init__(self, session: Any, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._session, self._folder = session, folder

    def stop(self) -> bytes:
        """See `TraceRecording.stop`."""
        with self._folder as folder:
            try:
                self._session.export_to_tb()
            except tf.errors.OpError as error:
                raise CannotRecord(f"TensorFlow's profiler failed: {error.message}") from error
            trace = next(Path(folder).rglob(f"*{TRACE_SUFFIX}"), None)
            if trace is None:
                raise CannotRecord("TensorFlow's profiler wrote no trace")
            return trace.read_bytes()


@dataclass(frozen=True, slots=True)
class TensorFlowServer:
    """TensorFlow's profiler server, which runs until its process ends."""

    stop: None = None
    kind: str = "tensorflow"
    version: str = tf.__version__
