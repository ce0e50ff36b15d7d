"""`xprof`: profiles that the program itself asks for, as an object, a decorator, a context manager or by step."""

from __future__ import annotations

import contextlib
import itertools
import operator
import threading
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.lifecycle.current_run import current
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.profiling.naming import called_session, named_session, stepped_session, window
from mldiagnostics.profiling.session import begin
from mldiagnostics.profiling.wrapping import Function, wrap
from mldiagnostics.text.suggest import parameters, unknown_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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

    `xprof` is another name of this class. As a decorator it also works without parentheses.

    Nothing here raises or waits: a problem is one warning in the log, and training goes on. A process records one
    profile at a time: one that starts while another records is not taken.

    Args:
        run: the run to profile; by default the current one, looked up when it is needed.
        process_index_list: the ranks that record, like `[0]`; None: all.
        session_id: the name of the session. Without it a session is named after the attempt and the step, or the
            number of the call, which all hosts agree on.
        steps: the first step to record and the one to stop at.
        every_n_steps: the steps between the beginnings of two profiles.
    """

    def __new__(  # the parameters are those of `__init__`: for a class, `inspect` and editors show these
        cls,
        run: MLRun | Callable[..., Any] | None = None,
        process_index_list: Iterable[int] | None = None,  # noqa: ARG004
        *extra: object,  # noqa: ARG004
        session_id: str | None = None,  # noqa: ARG004
        steps: tuple[int, int] | None = None,  # noqa: ARG004
        every_n_steps: int | None = None,  # noqa: ARG004
        **unknown: object,  # noqa: ARG004
    ) -> Any:
        """Return an object, or the decorated function for `@xprof` without parentheses."""
        if callable(run) and cls.__init__ is Xprof.__init__:  # also what jax.jit and functools.partial return
            return cls()(run)
        return super().__new__(cls)

    def __init__(
        self,
        run: MLRun | Callable[..., Any] | None = None,
        process_index_list: Iterable[int] | None = None,
        *extra: object,
        session_id: str | None = None,
        steps: tuple[int, int] | None = None,
        every_n_steps: int | None = None,
        **unknown: object,
    ) -> None:
        _ignore("xprof", Xprof.__init__, extra, unknown)
        self._given_run = _run(run)
        self._ranks = None if process_index_list is None else _ranks(process_index_list)
        self._session_id = session_id
        self._active: ProfileSession | None = None
        self._skips = False
        """Whether a profile was started that this rank does not record."""
        self._refused = False
        """Whether the last start was refused, which the log has said."""
        self._lock = threading.RLock()  # a signal's handler may end what its thread is about to start
        self._inside = False
        self._follow(steps, every_n_steps)

    def start(self, session_id: str | None = None, *extra: object, **unknown: object) -> None:
        """Begin a profile; all hosts that give the same `session_id`, or none, end in one session."""
        _ignore("xprof.start", Xprof.start, extra, unknown)
        if self._active is not None:
            warn_once("profile-started-twice", "xprof.start: this object records already; call stop() before")
            return
        self._start(session_id)

    def stop(self, *extra: object, **unknown: object) -> None:
        """End the profile; its trace is stored in the background, and by the end of the run at the latest."""
        _ignore("xprof.stop", Xprof.stop, extra, unknown)
        if not self._stop():
            warn_once("profile-not-running", "xprof.stop: nothing was recording; call start() before")

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
        """Start a profile, on every rank alike; false inside one of this object, where nothing is to be stopped."""
        with self._lock:
            if self._active is not None or self._skips:
                return False
            run = self._run()
            if run is None:
                warn_once("profile-without-run", "xprof: there is no run to keep a profile; call machinelearning_run")
            else:
                name = self._name(run, session_id, step)
                self._skips = not self._records(run)
                self._active = None if self._skips else begin(run, name, step=step)
            self._refused = self._active is None and not self._skips
            return not self._refused

    def _stop(self) -> bool:
        """Stop what was started; false if nothing was and the log does not say why."""
        with self._lock:
            active, self._active = self._active, None
            started = active is not None or self._skips or self._refused
            self._skips = self._refused = False
        if active is not None:
            active.end()
        return started

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
            warn_once("profile-steps", f"xprof records no steps: {error}")
        if self._window is None:
            return
        run = self._run()
        if run is None:
            warn_once("profile-without-run", "xprof records no steps: call machinelearning_run before xprof(steps=…)")
        else:
            run.on_step(self._at_step)

    def _at_step(self, step: int) -> None:
        inside = self._window is not None and step in self._window
        if inside and not self._inside:
            self._start(None, step=step)
        elif self._inside and not inside:
            self._stop()
        self._inside = inside


xprof = Xprof


def _run(run: object) -> Any:
    """Return `run` if it is one, else None: the current run is profiled."""
    if run is None or hasattr(run, "origin"):
        return run
    warn_once("profile-run", f"xprof: run={shown(run)} is not a run; the current run is profiled instead")
    return None


def _ranks(listed: Iterable[int]) -> frozenset[int]:
    """Return the ranks that record; none of them if `listed` cannot be read: a profile of all hosts is expensive."""
    try:
        return frozenset(map(operator.index, listed))
    except Exception as error:  # noqa: BLE001 - of whatever was passed
        warn_once(
            "profile-ranks",
            f"xprof: process_index_list={shown(listed)} is not a list of ranks ({error}); no profile is taken, pass a "
            "list like [0], or None for all ranks",
        )
        return frozenset()


def _ignore(function: str, source: Callable[..., Any], extra: tuple[object, ...], unknown: dict[str, object]) -> None:
    """Say which arguments of a call are ignored."""
    if unknown:
        warn_once(f"{function}-parameters", unknown_parameters(function, unknown, parameters(source)))
    if extra:
        warn_once(f"{function}-arguments", f"{function}: too many arguments; {', '.join(map(shown, extra))} is ignored")
