"""The words of the API server: paths, content types, and failures named for what to do next."""

import json
from typing import Final

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"

_PASSING: Final = frozenset({408, 410, 429, 500, 502, 503, 504})


class ClusterError(Exception):
    """The API server did not do what it was asked; `status` is its HTTP status, 0 without an answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Unavailable(ClusterError):
    """No answer, or one that says to come back later: the same call may succeed soon."""


class NotFound(ClusterError):
    """The object, or its kind, does not exist."""


class Conflict(ClusterError):
    """The object exists already, has changed, or is not the one that was meant."""


class RequestRejected(ClusterError):
    """Forbidden or invalid: the same call would fail again."""


_NAMED: Final = {404: NotFound, 409: Conflict}


def error_of(method: str, path: str, status: int, raw: bytes) -> ClusterError:
    """Name what an answer of 400 or above means; `raw` is its body, a Status as a rule."""
    try:
        said = json.loads(raw)["message"]
    except (ValueError, KeyError, TypeError):
        said = raw[:200].decode(errors="replace")
    kind = Unavailable if status in _PASSING else _NAMED.get(status, RequestRejected)
    return kind(f"The API server answered {method} {path} with {status}: {said}", status=status)


def metadata_only_type(kind: str) -> str:
    """Write the Accept header that asks for PartialObjectMetadata or a list of it."""
    return f"application/json;as={kind};g=meta.k8s.io;v=v1,application/json"


def path_to(
    group: str,
    version: str,
    plural: str,
    *,
    namespace: str | None = None,
    name: str | None = None,
    sub: str | None = None,
) -> str:
    """Write the URL path of a resource, an object or its subresource; the core group is the empty string."""
    parts = ["/apis", group, version] if group else ["/api", version]
    if namespace is not None:
        parts += ["namespaces", namespace]
    parts += [part for part in (plural, name, sub) if part is not None]
    return "/".join(parts)
