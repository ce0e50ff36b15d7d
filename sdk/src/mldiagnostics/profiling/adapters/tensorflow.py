"""TensorFlow: the session on which `tf.profiler.experimental` stands.

That one keeps a session which could not begin as if it ran, and no other begins in the process after it.
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
    """Records whatever TensorFlow does in this process."""

    framework = "TensorFlow"
    version = tf.__version__

    def start(self) -> TensorFlowRecording:
        """See `Recorder.start`."""
        session, folder = _pywrap_profiler.ProfilerSession(), tempfile.TemporaryDirectory(prefix="mldiagnostics-")
        try:
            session.start(folder.name, {})
        except tf.errors.AlreadyExistsError as error:
            folder.cleanup()
            raise Busy("another profiling session (an on-demand capture, tf.profiler) has the process") from error
        return TensorFlowRecording(session, folder)

    def serve(self, port: int) -> TensorFlowServer:
        """See `Recorder.serve`."""
        tf.profiler.experimental.server.start(port)
        return TensorFlowServer()


class TensorFlowRecording:
    """A session of TensorFlow's profiler, which returns XSpaces only as files, in `folder`."""

    def __init__(self, session: Any, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._session, self._folder = session, folder

    def stop(self) -> bytes:
        """See `Recording.stop`."""
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
    """TensorFlow's profiler server, which ends with its process."""

    stop: None = None
    kind: str = "tensorflow"
    version: str = tf.__version__
