"""The one-line way to capture: addresses in, report out."""

import asyncio
import contextlib
import logging
import os
import secrets
import time
import uuid
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeVar

from mldiagnostics import __version__
from mldiagnostics.capture.addresses import targets_of
from mldiagnostics.capture.arguments import address_list, place, seconds, stem_list, whole
from mldiagnostics.capture.engine import run
from mldiagnostics.capture.model import MAX_TRACE_BYTES, Options, Outcome, Target, Tracers, TraceSink
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
    start_lead_ms: int | None = None,
    deadline_s: float | None = None,
    allow_old_server: bool = False,
    max_trace_bytes: int = MAX_TRACE_BYTES,
    stems: Sequence[str] | None = None,
) -> CaptureReport:
    """Profile every process at `addresses` ("host:port", the port of `jax.profiler.start_server`) at the same time.

    A single text is one address. `stems` are the names of the trace files, which XProf shows as hosts, one for each
    address; without them a file is named after host and port.

    The traces come back over the network and go into one XProf session below `storage`, a local path or `gs://…`.
    All hosts start together, `start_lead_ms` from now (2000 ms with several of them, else at once), and everything is
    over after `deadline_s` seconds (lead, twice the duration, and a minute). Works inside a running event loop too,
    and blocks it.

    Whatever happens to a host is its outcome in the report. Raises `ConfigurationError` for arguments that cannot be
    meant or a session that exists, and `StoreError` if nothing can be stored; both before any host is disturbed.
    """
    storage, duration_ms = place("storage", storage), whole("duration_ms", duration_ms, "milliseconds")
    targets = targets_of(address_list(addresses), workload_root=storage)
    if stems is not None:
        names = stem_list(stems, len(targets))
        targets = [replace(target, stem=name) for target, name in zip(targets, names, strict=True)]
    lead_ms = _LEAD_MS * (len(targets) > 1)
    if start_lead_ms is not None:
        lead_ms = whole("start_lead_ms", start_lead_ms, "milliseconds")
    options = Options(
        session=sanitize(str(session)) if session else _new_session(),
        duration_ms=duration_ms,
        deadline_s=(lead_ms + 2 * duration_ms) / 1000 + _SERIALISATION_S
        if deadline_s is None
        else seconds("deadline_s", deadline_s),
        tracers=tracers or Tracers(),
        allow_old_server=allow_old_server,
        max_trace_bytes=whole("max_trace_bytes", max_trace_bytes, "bytes"),
    )
    store = open_store(storage, timeout_s=_STORE_TIMEOUT_S)
    write = partial(record, uid=str(uuid.uuid4()), targets=targets, version=__version__)
    _claim(store, options.session, write(options=options, started_ns=time.time_ns(), outcomes=()))
    started_ns = time.time_ns()  # not before the claim: a slow store must not use up the lead
    if lead_ms:
        options = replace(options, start_ns=started_ns + lead_ms * 1_000_000)
    outcomes = _in_own_loop(_all(targets, options, _sink(store, options.session)))
    try:
        complete = write(options=options, started_ns=started_ns, outcomes=outcomes)
        store.put(capture_record_key(options.session), complete, replace=True)
    except StoreError as error:
        _log.warning("the traces are stored, the record beside them is not complete: %s", printable(str(error)))
    return CaptureReport(options.session, store.url(), outcomes, skew_ms(outcomes))


def _claim(store: Store, session: str, content: bytes) -> None:
    """Make the session ours before anybody is dialled; that also shows whether the store can be written to."""
    try:
        store.put(capture_record_key(session), content)
    except AlreadyStored:
        raise ConfigurationError(f"session {session!r} exists in {store.url()}: choose another name") from None


def _sink(store: Store, session: str) -> TraceSink:
    return lambda target, trace: asyncio.to_thread(store.put, trace_key(session, target.stem), trace)


async def _all(targets: Sequence[Target], options: Options, sink: TraceSink) -> tuple[Outcome, ...]:
    async with contextlib.aclosing(run(targets, options, sink=sink)) as outcomes:
        found = {outcome.target: outcome async for outcome in outcomes}
    return tuple(found[target] for target in targets)


def _in_own_loop(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end: here if no event loop runs in this thread, else in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _new_session() -> str:
    return f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
