"""Part of a server that opens a session in XProf."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import quote

from mldiagnostics.errors import MLDiagnosticsError, StoreNotFound
from mldiagnostics.layout import sanitize
from mldiagnostics.runs.session_cache import stored_session
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from mldiagnostics.runs.session_cache import StoredSession


class SessionAbsent(MLDiagnosticsError):
    """A session has no traces that can be read from here."""

    def __init__(self, session: str) -> None:
        problem = "has no traces in the directory of this run that can be read from here"
        super().__init__(f"session '{session[:100]}': {problem}; use the command on the page of the run")


def readable_session(directory: str, session: str) -> StoredSession:
    """Return a session of a run with its traces; a name that is a path has none.

    Raises:
        SessionAbsent: It has no traces.
        StoreError: The directory cannot be read.
    """
    stored = None
    if sanitize(session) == session:
        try:
            stored = stored_session(open_store(directory), session)
        except StoreNotFound:
            stored = None
    if stored is None:
        raise SessionAbsent(session)
    return stored


class SessionAddress(NamedTuple):
    """A session as URLs of the view name it."""

    source: str
    key: str
    session: str

    @property
    def path(self) -> str:
        """The address of the session in XProf behind the view, with a slash at its end.

        >>> SessionAddress("cluster", "ml:a", "slow").path
        '/xprof/cluster/ml%3Aa/slow/'
        """
        return f"/xprof/{'/'.join(quote(part, safe='') for part in self)}/"


class SessionOpener(Protocol):
    """Opens sessions of runs that a viewer may see."""

    async def page(self, address: SessionAddress, directory: str, *, wait_s: float) -> str | None:
        """Return the URL of a session in XProf; None while it is prepared.

        The preparation goes on after the call, and later calls return its result.

        Args:
            address: The session.
            directory: Path or URL of the directory of its run.
            wait_s: Longest wait, in seconds.

        Raises:
            MLDiagnosticsError: It cannot be opened.
        """

    async def aclose(self) -> None:
        """End what was started for it."""
