"""TensorFlow: the session on which `tf.profiler.experimental` stands.

That one keeps a session which could not begin as if it ran, and no other begins in the process after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.profiler.internal import _pywrap_profiler

from mldiagnostics.profiling.recorder import Busy, CannotRecord


class TensorFlowRecorder:
    """Records whatever TensorFlow does in this process."""

    framework = "TensorFlow"
    version = tf.__version__

    def start(self) -> TensorFlowRecording:
        """See `Recorder.start`."""
        session = _pywrap_profiler.ProfilerSession()
        try:
            session.start("", {})
        except tf.errors.AlreadyExistsError as error:
            raise Busy("another profiling session (an on-demand capture, tf.profiler) has the process") from error
        return TensorFlowRecording(session)

    def serve(self, port: int) -> TensorFlowServer:
        """See `Recorder.serve`."""
        tf.profiler.experimental.server.start(port)
        return TensorFlowServer()


class TensorFlowRecording:
    """A session of TensorFlow's profiler."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def stop(self) -> bytes:
        """See `Recording.stop`."""
        try:
            return bytes(self._session.stop())
        except tf.errors.OpError as error:
            raise CannotRecord(f"TensorFlow's profiler failed: {error.message}") from error


@dataclass(frozen=True, slots=True)
class TensorFlowServer:
    """TensorFlow's profiler server, which ends with its process."""

    stop: None = None
    kind: str = "tensorflow"
    version: str = tf.__version__
