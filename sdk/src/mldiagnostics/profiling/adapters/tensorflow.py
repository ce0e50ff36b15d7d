"""TensorFlow: its experimental profiler, which writes into a directory that is read back and removed."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from mldiagnostics.layout import TRACE_SUFFIX
from mldiagnostics.profiling.recorder import Busy, CannotRecord


class TensorFlowRecorder:
    """Records whatever TensorFlow does in this process."""

    framework = "TensorFlow"
    version = tf.__version__

    def start(self) -> TensorFlowRecording:
        """See `Recorder.start`."""
        folder = tempfile.TemporaryDirectory(prefix="mldiagnostics-")
        try:
            tf.profiler.experimental.start(folder.name)
        except tf.errors.AlreadyExistsError as error:
            folder.cleanup()
            with contextlib.suppress(tf.errors.UnavailableError):
                tf.profiler.experimental.stop(save=False)  # else TensorFlow never starts another in this process
            raise Busy("another profiling session (an on-demand capture, tf.profiler) has the process") from error
        return TensorFlowRecording(folder)

    def serve(self, port: int) -> TensorFlowServer:
        """See `Recorder.serve`."""
        tf.profiler.experimental.server.start(port)
        return TensorFlowServer()


class TensorFlowRecording:
    """A session of TensorFlow's profiler, exported into `folder`."""

    def __init__(self, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._folder = folder

    def stop(self) -> bytes:
        """See `Recording.stop`."""
        with self._folder as folder:
            try:
                tf.profiler.experimental.stop()
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
