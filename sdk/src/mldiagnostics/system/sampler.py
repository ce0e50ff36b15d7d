"""The thread that samples all sources at an interval and records their values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.system.gpu import gpus
from mldiagnostics.system.host import HostMetrics
from mldiagnostics.system.tpu import tpus

if TYPE_CHECKING:
    from mldiagnostics.pipeline.recorder import RecordPipeline
    from mldiagnostics.system.source import SystemSource

STOP_TIMEOUT_S = 1.0
_FIRST_S = 1.0

SourceFactory: TypeAlias = Callable[[], "SystemSource | None"]


def available_sources() -> list[SystemSource]:
    """Return the sources that exist on this host. May load a driver's library."""
    return [source for name, create in _FACTORIES.items() if (source := _create(name, create)) is not None]


_FACTORIES: dict[str, SourceFactory] = {"host": HostMetrics, "gpu": gpus, "tpu": tpus}


def _create(name: str, create: SourceFactory) -> SystemSource | None:
    try:
        return create()
    except ImportError:  # an optional extra
        return None
    except Exception as error:  # noqa: BLE001 - a driver's library may fail in any way
        warn_once(f"system-{name}", f"system metrics of the {name} are not available: {error!r}")
        return None


class Sampler:
    """Samples until it is stopped, for the first time after at most a second."""

    def __init__(
        self,
        pipeline: RecordPipeline,
        *,
        interval_s: float,
        sources: Callable[[], Sequence[SystemSource]] = available_sources,
    ) -> None:
        self._pipeline = pipeline
        self._interval_s = interval_s
        self._sources = sources
        origin = pipeline.origin
        self._process = {"hostname": origin.host, "process_index": str(origin.rank)}
        """Labels of every series, as Google's SDK has them."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mldiagnostics-system", daemon=True)

    def start(self) -> None:
        """Start the thread, which also looks for sources."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling; does not wait longer than a second for a source that hangs."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        sources = self._sources()
        pause_s = min(_FIRST_S, self._interval_s)
        while sources and not self._stopping.wait(pause_s):
            pause_s = min(self._interval_s, threading.TIMEOUT_MAX)
            for source in sources:
                self._sample(source)

    def _sample(self, source: SystemSource) -> None:
        try:
            for metric, value, labels in source.read():
                self._pipeline.append("metric", metric, value=value, labels={**labels, **self._process})
        except Exception as error:  # noqa: BLE001 - a driver's fault must not stop the training
            warn_once(f"system-{source.name}", f"system metrics of the {source.name} could not be read: {error!r}")
