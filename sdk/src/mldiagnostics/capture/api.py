"""`capture`: profile processes by their addresses in one call."""

import asyncio
import contextlib
import logging
import os
import secrets
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeVar

from mldiagnostics import __version__
from mldiagnostics.capture.addresses import targets_of
from mldiagnostics.capture.arguments import address_list, seconds, stem_list, storage_path, whole_number
from mldiagnostics.capture.engine import run
from mldiagnostics.capture.model import (
    MAX_TRACE_BYTES,
    Control,
    Options,
    Outcome,
    Recording,
    Target,
    Tracers,
    TraceSink,
)
from mldiagnostics.capture.report import CaptureReport, record, skew_ms
from mldiagnostics.errors import AlreadyStored, ConfigurationError, StoreError
from mldiagnostics.layout import capture_record_key, sanitize, trace_key
from mldiagnostics.store import Store, open_store
from mldiagnostics.text.terminal import printable

_LEAD_MS = 2000
_SERIALISATION_S = 60.0
_STORE_TIMEOUT_S = 20.0

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def capture(
    addresses: Sequence[str] | str,
    *,
    storage: str | os.PathLike[str],
    duration_ms: int = 2000,
    session: str | None = None,
    tracers: Tracers | None = None,
    recording: Recording = Recording.NOW,
    start_lead_ms: int | None = None,
    deadline_s: float | None = None,
    allow_old_server: bool = False,
    max_trace_bytes: int = MAX_TRACE_BYTES,
    stems: Sequence[str] | None = None,
) -> CaptureReport:
    """Profile several processes at the same time and store their traces.

    The traces go into one XProf session. The call blocks, also inside a running event loop. A failure of one host does
    not raise; it is the host's outcome in the report.

    Args:
        addresses: "host:port" for each process, with the port of `jax.profiler.start_server`; or one such string.
        storage: log directory for the session: a local path, `gs://bucket/prefix`, `s3://…` or `az://…`.
        duration_ms: length of the recording in milliseconds.
        session: name of the session; it must not exist yet. Default: date, time and a random suffix.
        tracers: levels of the profiler's tracers.
        recording: `Recording.PAST` takes the events that a program has recorded continuously, instead of new ones.
        start_lead_ms: start of the recording from now, in milliseconds, the same moment on all hosts. Default: 2000
            with several addresses, otherwise 0.
        deadline_s: seconds until every target has an outcome. Default: lead, twice the duration, and 60 s.
        allow_old_server: capture servers of jaxlib < 0.9 too, which may freeze their process without TensorFlow.
        max_trace_bytes: reject larger traces.
        stems: names of the trace files, one per address; XProf shows them as hosts. Default: host and port.

    Returns:
        The session with one outcome per address, in their order.

    Raises:
        ConfigurationError: an argument is invalid, or the session exists. No host is contacted.
        StoreError: nothing can be stored in `storage`. No host is contacted.

    Example:
        >>> report = capture(["10.0.0.7:9999", "10.0.0.8:9999"], storage="gs://bucket/profiles")  # doctest: +SKIP
    """
    return _run_blocking(prepare_capture(**locals()).run())


def prepare_capture(
    addresses: Sequence[str] | str,
    *,
    storage: str | os.PathLike[str],
    duration_ms: int = 2000,
    session: str | None = None,
    tracers: Tracers | None = None,
    recording: Recording = Recording.NOW,
    start_lead_ms: int | None = None,
    deadline_s: float | None = None,
    allow_old_server: bool = False,
    max_trace_bytes: int = MAX_TRACE_BYTES,
    stems: Sequence[str] | None = None,
) -> "PreparedCapture":
    """Return a capture that is ready to run; no host and no store is contacted.

    Arguments are those of `capture`. Raises `ConfigurationError`.
    """
    storage, duration_ms = storage_path("storage", storage), whole_number("duration_ms", duration_ms, "milliseconds")
    targets = targets_of(address_list(addresses), workload_root=storage)
    if stems is not None:
        names = stem_list(stems, len(targets))
        targets = [replace(target, stem=name) for target, name in zip(targets, names, strict=True)]
    lead_ms = _LEAD_MS * (len(targets) > 1 and recording is Recording.NOW)
    if start_lead_ms is not None:
        lead_ms = whole_number("start_lead_ms", start_lead_ms, "milliseconds")
    options = Options(
        session=sanitize(str(session)) if session else _new_session(),
        duration_ms=duration_ms,
        deadline_s=(lead_ms + 2 * duration_ms) / 1000 + _SERIALISATION_S
        if deadline_s is None
        else seconds("deadline_s", deadline_s),
        tracers=tracers or Tracers(),
        recording=recording,
        allow_old_server=allow_old_server,
        max_trace_bytes=whole_number("max_trace_bytes", max_trace_bytes, "bytes"),
    )
    return PreparedCapture(targets, options, open_store(storage, timeout_s=_STORE_TIMEOUT_S), lead_ms)


@dataclass(frozen=True, slots=True)
class PreparedCapture:
    """A capture whose arguments are checked."""

    targets: Sequence[Target]
    options: Options
    store: Store
    lead_ms: int

    @property
    def directory(self) -> str:
        """The log directory, a path or URL."""
        return self.store.url()

    async def run(
        self, *, control: Control | None = None, on_outcome: Callable[[Outcome], None] | None = None
    ) -> CaptureReport:
        """Profile the targets and store their traces, once.

        Args:
            control: Terminates the recordings on request.
            on_outcome: Called with each outcome as soon as it is known.

        Raises:
            ConfigurationError: The session exists. No host is contacted.
            StoreError: Nothing can be stored. No host is contacted.
        """
        write = partial(record, uid=str(uuid.uuid4()), targets=self.targets, version=__version__)
        claim = write(options=self.options, started_ns=time.time_ns(), outcomes=())
        await asyncio.to_thread(_claim, self.store, self.options.session, claim)
        started_ns = time.time_ns()  # after the claim, so that a slow store does not use up the lead
        options = self.options
        if self.lead_ms:
            options = replace(options, start_ns=started_ns + self.lead_ms * 1_000_000)
        by_target: dict[Target, Outcome] = {}
        sink = _sink(self.store, options.session)
        async with contextlib.aclosing(run(self.targets, options, sink=sink, control=control)) as outcomes:
            async for outcome in outcomes:
                by_target[outcome.target] = outcome
                if on_outcome is not None:
                    on_outcome(outcome)
        ordered = tuple(by_target[target] for target in self.targets)
        try:
            complete = write(options=options, started_ns=started_ns, outcomes=ordered)
            await asyncio.to_thread(self.store.put, capture_record_key(options.session), complete, replace=True)
        except StoreError as error:
            _log.warning("capture.json: not updated, the traces are stored: %s", printable(str(error)))
        return CaptureReport(options.session, self.directory, ordered, skew_ms(ordered))


def _claim(store: Store, session: str, content: bytes) -> None:
    """Create the session's record, which also tests the store."""
    try:
        store.put(capture_record_key(session), content)
    except AlreadyStored:
        raise ConfigurationError(f"session: {session!r} exists in {store.url()}; choose another name") from None


def _sink(store: Store, session: str) -> TraceSink:
    return lambda target, trace: asyncio.to_thread(store.put, trace_key(session, target.stem), trace)


def _run_blocking(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to completion; in a new thread if this one runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def _new_session() -> str:
    return f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
