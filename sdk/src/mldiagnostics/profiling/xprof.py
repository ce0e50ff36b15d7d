"""`xprof`: profiles by an object, a decorator, a context manager or by step."""

from __future__ import annotations

import contextlib
import itertools
import operator
import threading
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_ignored, warn_once
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.lifecycle.current_run import current
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.profiling.naming import named_session, numbered_session, step_session, window
from mldiagnostics.profiling.session import start
from mldiagnostics.profiling.wrapping import Function, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self

    from mldiagnostics.lifecycle.current_run import CurrentRun
    from mldiagnostics.profiling.session import ProfileSession

_counter = itertools.count(1)
"""Numbers the unnamed profiles; ranks that do not record count too, so that all agree."""


class Xprof:
    """Profiles of this process, stored with the run.

    The file of a profile is `plugins/profile/<session>/<host>.xplane.pb`, where XProf reads it.

    `xprof` is another name of this class. As a decorator it also works without parentheses.

    No method raises or waits: a problem is one warning in the log, and training goes on. A process records one
    profile at a time: one that starts while another records is not taken. Traces are collected and stored in the
    background; the end of the run waits up to 20 s for them, then they are left in the spool.

    Args:
        run: The run to profile. Default: the current run at the time of the profile. As `@xprof` without parentheses it
            is the decorated function.
        process_index_list: The ranks that record, such as `[0]`. Default: all ranks.
        session_id: The name of the session. Default: `a<attempt>-s<step>` for profiles by step, else
            `a<attempt>-n<number of the profile>`, so that all hosts write to the same session.
        steps: The first step to record and the step to stop at, counted by `run.step`. Default: not by step.
        every_n_steps: Record once every so many steps: `steps` if given, else a single step. Default: once.

    Example:
        >>> with xprof():  # doctest: +SKIP
        ...     train_step()
        >>> profile = xprof(session_id="warm-up")  # then profile.start() and profile.stop()  # doctest: +SKIP
        >>> xprof(steps=(10, 13))  # from run.step(10) until run.step(13)  # doctest: +SKIP
        >>> xprof(every_n_steps=1000)  # one step of a thousand  # doctest: +SKIP
        >>> @xprof(process_index_list=[0])  # each call, on rank 0 only  # doctest: +SKIP
        ... def evaluate(): ...
    """

    def __new__(  # the parameters are those of `__init__`: for a class, `inspect` and editors show these
        cls,
        run: CurrentRun | Callable[..., Any] | None = None,
        process_index_list: Iterable[int] | None = None,  # noqa: ARG004
        *extra: object,  # noqa: ARG004
        session_id: str | None = None,  # noqa: ARG004
        steps: tuple[int, int] | None = None,  # noqa: ARG004
        every_n_steps: int | None = None,  # noqa: ARG004
        **unknown: object,  # noqa: ARG004
    ) -> Any:
        """Return an object, or the decorated function for `@xprof` without parentheses."""
        if callable(run) and cls.__init__ is Xprof.__init__:  # includes results of jax.jit and functools.partial
            return cls()(run)
        return super().__new__(cls)

    def __init__(
        self,
        run: CurrentRun | Callable[..., Any] | None = None,
        process_index_list: Iterable[int] | None = None,
        *extra: object,
        session_id: str | None = None,
        steps: tuple[int, int] | None = None,
        every_n_steps: int | None = None,
        **unknown: object,
    ) -> None:
        warn_ignored("xprof", Xprof.__init__, extra, unknown)
        self._given_run = _run(run)
        self._ranks = None if process_index_list is None else _ranks(process_index_list)
        self._session_id = session_id
        self._active: ProfileSession | None = None
        self._is_skipping = False
        """Whether a profile was started that this rank does not record."""
        self._has_failed = False
        """Whether the last start failed, with a warning in the log."""
        self._lock = threading.RLock()  # a signal handler may stop a profile that its thread is starting
        self._in_window = False
        self._record_steps(steps, every_n_steps)

    def start(self, session_id: str | None = None, *extra: object, **unknown: object) -> None:
        """Start a profile.

        Args:
            session_id: The name of the session, the same on all hosts. Default: as of the object.
        """
        warn_ignored("xprof.start", Xprof.start, extra, unknown)
        if self._active is not None:
            warn_once("profile-started-twice", "xprof.start: this object is recording already; call stop() first")
            return
        self._start(session_id)

    def stop(self, *extra: object, **unknown: object) -> None:
        """Stop the profile; its trace is stored in the background."""
        warn_ignored("xprof.stop", Xprof.stop, extra, unknown)
        if not self._stop():
            warn_once("profile-not-running", "xprof.stop: no profile was started; call start() first")

    def __enter__(self) -> Self:
        """Start a profile."""
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the profile if it started."""
        self._stop()

    def __call__(self, function: Function) -> Function:
        """Profile each call of `function`; nested calls are in the outer one's profile."""
        return wrap(function, self._outermost)

    @contextlib.contextmanager
    def _outermost(self) -> Iterator[None]:
        """Profile the block, unless it is nested in another one of this object."""
        started = self._start(None)
        try:
            yield
        finally:
            if started:
                self._stop()

    def _start(self, session_id: str | None, *, step: int | None = None) -> bool:
        """Start a profile; false if this object has started one already."""
        with self._lock:
            if self._active is not None or self._is_skipping:
                return False
            run = self._run()
            if run is None:
                warn_once("profile-without-run", "xprof: no current run; call machinelearning_run first")
            else:
                name = self._name(run, session_id, step)
                self._is_skipping = not self._records(run)
                step = run.last_step if step is None else step
                self._active = None if self._is_skipping else start(run, name, step=step)
            self._has_failed = self._active is None and not self._is_skipping
            return not self._has_failed

    def _stop(self) -> bool:
        """Stop the profile; false if none was started and no warning was logged."""
        with self._lock:
            active, self._active = self._active, None
            started = active is not None or self._is_skipping or self._has_failed
            self._is_skipping = self._has_failed = False
        if active is not None:
            active.stop()
        return started

    def _name(self, run: CurrentRun, session_id: str | None, step: int | None) -> str:
        """Return the session's name; counts all calls, so that hosts agree."""
        number = next(_counter)
        given = session_id or self._session_id
        if given:
            return named_session(str(given))
        attempt = run.origin.attempt
        return numbered_session(attempt, number) if step is None else step_session(attempt, step)

    def _run(self) -> CurrentRun | None:
        return self._given_run if self._given_run is not None else current()

    def _records(self, run: CurrentRun) -> bool:
        return not run.metric_only_run and (self._ranks is None or run.origin.rank in self._ranks)

    def _record_steps(self, steps: tuple[int, int] | None, every_n_steps: int | None) -> None:
        """Start and stop at steps of the run, if `steps` or `every_n_steps` is given."""
        try:
            self._window = window(steps, every_n_steps)
        except ConfigurationError as error:
            self._window = None
            warn_once("profile-steps", f"xprof: records no steps: {error}")
        if self._window is None:
            return
        run = self._run()
        if run is None:
            warn_once(
                "profile-without-run",
                "xprof: records no steps without a run; call machinelearning_run before xprof(steps=…)",
            )
        else:
            run.on_step(self._at_step)

    def _at_step(self, step: int) -> None:
        in_window = self._window is not None and step in self._window
        if in_window and not self._in_window:
            self._start(None, step=step)
        elif self._in_window and not in_window:
            self._stop()
        self._in_window = in_window


xprof = Xprof


def _run(run: object) -> Any:
    """Return `run` if it is a run, else None."""
    if run is None or hasattr(run, "origin"):
        return run
    warn_once("profile-run", f"xprof: run={shown(run)} is not a run; the current run is profiled instead")
    return None


def _ranks(listed: Iterable[int]) -> frozenset[int]:
    """Return the ranks that record.

    If `listed` is invalid no rank records, since profiles of all hosts are expensive.
    """
    try:
        return frozenset(map(operator.index, listed))
    except Exception as error:  # noqa: BLE001 - the argument may raise anything
        warn_once(
            "profile-ranks",
            f"xprof: process_index_list={shown(listed)} is not a list of ranks ({error}); no profile is taken, pass a "
            "list like [0], or None for all ranks",
        )
        return frozenset()
