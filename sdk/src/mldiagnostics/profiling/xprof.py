"""`xprof`: profiles that the program itself asks for, as an object, a decorator, a context manager or by step."""

from __future__ import annotations

import contextlib
import itertools
import threading
from typing import TYPE_CHECKING, Any, overload

from mldiagnostics.complaints import complain
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.profiling.naming import called_session, named_session, stepped_session, window
from mldiagnostics.profiling.session import begin
from mldiagnostics.profiling.wrapping import Function, wrap
from mldiagnostics.run import current

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

    from mldiagnostics.profiling.session import ProfileSession
    from mldiagnostics.run import MLRun

_counter = itertools.count(1)
"""Numbers the profiles without a name; every process counts, also those that do not record, so that all agree."""


class Xprof:
    """Profiles of this process, stored with the run as `plugins/profile/<session>/<host>.xplane.pb`.

        with xprof():                 # or @xprof(), or x = xprof(); x.start(); …; x.stop()
            step()
        xprof(steps=(10, 13))         # records from run.step(10) until run.step(13)
        xprof(every_n_steps=1000)     # one step of a thousand

    `run` is the current one by default, looked up when it is needed. `process_index_list` are the ranks that record
    (None: all). Without `session_id` a session is named after the attempt and the step, or the number of the call,
    which all hosts agree on. Nothing here raises: what is in the way is said once in the log, and training goes on.
    """

    def __init__(
        self,
        run: MLRun | None = None,
        process_index_list: Iterable[int] | None = None,
        *,
        session_id: str | None = None,
        steps: tuple[int, int] | None = None,
        every_n_steps: int | None = None,
    ) -> None:
        if run is not None and not hasattr(run, "origin"):
            complain("profile-run", f"xprof: run={run!r} is no run; the one of this process is profiled")
            run = None
        self._given_run = run
        self._ranks = None if process_index_list is None else _ranks(process_index_list)
        self._session_id = session_id
        self._active: ProfileSession | None = None
        self._lock = threading.RLock()  # a signal's handler may end what its thread is about to start
        self._inside = False
        self._follow(steps, every_n_steps)

    def start(self, session_id: str | None = None) -> None:
        """Begin a profile; all hosts that give the same `session_id`, or none, end in one session."""
        if self._active is not None:
            complain("profile-started-twice", "xprof.start: this object records already; call stop() before")
            return
        self._start(session_id)

    def stop(self) -> None:
        """End the profile; its trace is stored in the background, and by the end of the run at the latest."""
        if not self._stop():
            complain("profile-not-running", "xprof.stop: nothing was recording; call start() before")

    def __enter__(self) -> Self:
        """Begin a profile."""
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """End the profile, if it began."""
        self._stop()

    def __call__(self, function: Function) -> Function:
        """Profile each call of `function`; a call inside another one belongs to the outer one's profile."""
        return wrap(function, self._outermost)

    @contextlib.contextmanager
    def _outermost(self) -> Iterator[None]:
        """Profile the block, unless it runs inside another one of this object."""
        started = self._start(None)
        try:
            yield
        finally:
            if started:
                self._stop()

    def _start(self, session_id: str | None, *, step: int | None = None) -> bool:
        with self._lock:
            if self._active is not None:
                return False
            run = self._run()
            if run is None:
                complain("profile-without-run", "xprof: there is no run to keep a profile: call machinelearning_run")
                return False
            name = self._name(run, session_id, step)
            if self._records(run):
                self._active = begin(run, name, step=step)
            return self._active is not None

    def _stop(self) -> bool:
        with self._lock:
            active, self._active = self._active, None
        if active is not None:
            active.end()
        return active is not None

    def _name(self, run: MLRun, session_id: str | None, step: int | None) -> str:
        """Name a session; the calls are counted in any case, for hosts that skip this one."""
        number = next(_counter)
        wanted = session_id or self._session_id
        if wanted:
            return named_session(str(wanted))
        attempt = run.origin.attempt
        return called_session(attempt, number) if step is None else stepped_session(attempt, step)

    def _run(self) -> MLRun | None:
        return self._given_run if self._given_run is not None else current()

    def _records(self, run: MLRun) -> bool:
        return not run.metric_only_run and (self._ranks is None or run.origin.rank in self._ranks)

    def _follow(self, steps: tuple[int, int] | None, every_n_steps: int | None) -> None:
        """Let the run's steps start and stop this object, if that was asked for."""
        try:
            self._window = window(steps, every_n_steps)
        except ConfigurationError as error:
            self._window = None
            complain("profile-steps", f"xprof records no steps: {error}")
        if self._window is None:
            return
        run = self._run()
        if run is None:
            complain("profile-without-run", "xprof records no steps: call machinelearning_run before xprof(steps=…)")
        else:
            run.on_step(self._at_step)

    def _at_step(self, step: int) -> None:
        inside = self._window is not None and step in self._window
        if inside and not self._inside:
            self._start(None, step=step)
        elif self._inside and not inside:
            self._stop()
        self._inside = inside


@overload
def xprof(run: Function) -> Function: ...


@overload
def xprof(
    run: MLRun | None = ...,
    process_index_list: Iterable[int] | None = ...,
    *,
    session_id: str | None = ...,
    steps: tuple[int, int] | None = ...,
    every_n_steps: int | None = ...,
) -> Xprof: ...


def xprof(run: Any = None, process_index_list: Iterable[int] | None = None, **options: Any) -> Any:
    """Return an `Xprof`, which documents the arguments; `@xprof` without parentheses decorates too."""
    if callable(run):  # also what jax.jit and functools.partial return
        return Xprof()(run)
    return Xprof(run, process_index_list, **options)


def _ranks(listed: Iterable[int]) -> frozenset[int] | None:
    try:
        return frozenset(map(int, listed))
    except (TypeError, ValueError):
        complain("profile-ranks", f"xprof: process_index_list={listed!r} is no list of ranks; all ranks record")
        return None
