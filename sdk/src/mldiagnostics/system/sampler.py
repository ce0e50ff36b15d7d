"""The thread that asks the sources, at a stated interval, and records what they say: with time and without step."""

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

Finder: TypeAlias = Callable[[], "SystemSource | None"]


def available_sources() -> list[SystemSource]:
    """Look for what can be measured here; what is not there gives no series. May load a driver's library."""
    return [source for name, find in _FINDERS.items() if (source := _found(name, find)) is not None]


_FINDERS: dict[str, Finder] = {"host": HostMetrics, "gpu": gpus, "tpu": tpus}


def _found(name: str, find: Finder) -> SystemSource | None:
    try:
        return find()
    except ImportError:  # an extra that nobody asked for
        return None
    except Exception as error:  # noqa: BLE001 - a driver's library may fail in any way
        warn_once(f"system-{name}", f"there are no system metrics of the {name}: {error!r}")
        return None


class Sampler:
    """Samples until it is stopped; the first time after a second, or after the interval if that is shorter."""

    def __init__(
        self,
        recording: RecordPipeline,
        *,
        interval_s: float,
        find: Callable[[], Sequence[SystemSource]] = available_sources,
    ) -> None:
        self._recording = recording
        self._interval_s = interval_s
        self._find = find
        origin = recording.origin
        self._process = {"hostname": origin.host, "process_index": str(origin.rank)}
        """Labels of every series, as Google's SDK has them."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mldiagnostics-system", daemon=True)

    def start(self) -> None:
        """Begin to sample; looking for sources is the thread's work too."""
        self._thread.start()

    def stop(self) -> None:
        """Sample no more; a source that hangs is left alone after a second."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        sources = self._find()
        pause_s = min(_FIRST_S, self._interval_s)
        while sources and not self._stopping.wait(pause_s):
            pause_s = self._interval_s
            for source in sources:
                self._sample(source)

    def _sample(self, source: SystemSource) -> None:
        try:
            for metric, value, labels in source.read():
                self._recording.append("metric", metric, value=value, labels={**labels, **self._process})
        except Exception as error:  # noqa: BLE001 - the training goes on whatever a driver does
            warn_once(f"system-{source.name}", f"system metrics of the {source.name} are missing for now: {error!r}")
