"""Part of a server that opens a session in XProf."""

from __future__ import annotations

from typing import NamedTuple, Protocol
from urllib.parse import quote

__all__ = ["SessionAddress", "SessionOpener"]


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
