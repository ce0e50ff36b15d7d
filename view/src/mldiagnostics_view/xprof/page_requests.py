"""Requests of XProf's page, and the ones that XProf gets for them; pure.

XProf has no users: a request with `session_path` or `run_path` reads any directory, and `capture_profile` dials any
address. So a request is not passed on as it is. Those that are known are written anew for one session, and all others
get the page, which reads its state from the address.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


PREFIX: Final = "data/plugin/profile/"
_DATA: Final = frozenset({"config", "data", "data_csv", "hosts", "module_list", "run_tools", "runs", "version"})
_FILE: Final = re.compile(r"[a-z0-9_]+\.(css|html|js|wasm|woff2)")
_PLACES: Final = frozenset({"session_path", "run_path"})
"""Parameters that name directories."""
_SELF: Final = "'self'"


class RequestKind(Enum):
    """Kinds of requests."""

    PAGE = "page"
    FILE = "file"
    DATA = "data"


class PageRequest(NamedTuple):
    """A request for XProf: path, and query without the directory of the session."""

    kind: RequestKind
    path: str
    query: Sequence[tuple[str, str]] = ()

    def target(self, directory: str) -> str:
        """Return path and query for XProf.

        Args:
            directory: Directory of the session for XProf.

        >>> PageRequest(RequestKind.DATA, "/data/plugin/profile/hosts", [("run", "slow")]).target("/cache/a/slow")
        '/data/plugin/profile/hosts?run=slow&session_path=%2Fcache%2Fa%2Fslow'
        """
        if self.kind is not RequestKind.DATA:
            return self.path
        return f"{self.path}?{urlencode([*self.query, ('session_path', directory)])}"


def page_request(path: str, query: Sequence[tuple[str, str]], session: str) -> PageRequest | None:
    """Return the request for XProf; None if it means something else than the session.

    Args:
        path: Path below the address of the session.
        query: Names and values.
        session: Name of the session.
    """
    name = path.removeprefix(PREFIX)
    if _FILE.fullmatch(name):
        return PageRequest(RequestKind.FILE, f"/{PREFIX}{name}")
    if path == name or name not in _DATA:
        return PageRequest(RequestKind.PAGE, "/")
    if any(key == "run" and value != session for key, value in query) or any("../" in value for _, value in query):
        return None
    kept = [(key, value) for key, value in query if key not in _PLACES]
    return PageRequest(RequestKind.DATA, f"/{PREFIX}{name}", kept)


def page_headers(policy: str, names: Sequence[str], path: str) -> Mapping[str, str]:
    """Return the headers of a response of XProf.

    The texts that XProf shows were written by the programs of tenants, and its pages need inline scripts. So its page
    may read and frame only addresses of the same session, and is not in one group with pages of the view: a script in
    it cannot act as its viewer there.

    Args:
        policy: XProf's own Content-Security-Policy.
        names: Names of this server in the URLs of browsers.
        path: Address of the session.
    """
    own = " ".join(f"{name}:*{path}" for name in names)
    rules = [rule.strip().replace(_SELF, own) for rule in policy.split(";") if rule.strip()]
    given = {rule.partition(" ")[0] for rule in rules}
    defaults = {
        "default-src": own,
        "base-uri": own,
        "form-action": "'none'",
        "frame-ancestors": _SELF,
        "object-src": "'none'",
    }
    rules += [f"{rule} {value}" for rule, value in defaults.items() if rule not in given]
    return {
        "Content-Security-Policy": "; ".join(rules),
        "X-Frame-Options": "SAMEORIGIN",
        "Cross-Origin-Opener-Policy": "unsafe-none",
    }
