"""Paths, content types and errors of the API server."""

import json
import re
from typing import Any, Final

from mldiagnostics_kube.client.shapes import STATUS, problem_of

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
"""Server-side apply; the body is JSON, which is YAML."""

# A segment of a path as Kubernetes validates it: path.IsValidPathSegmentName, and RFC 1123 for the others.
_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_VERSION: Final = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._:~-]{1,253}")

NOT_PERMITTED: Final = frozenset({401, 403})
"""Statuses of requests without the right; right after its start an API server returns them too."""
_TRANSIENT: Final = frozenset({408, 410, 429, 500, 502, 503, 504})


class ClusterError(Exception):
    """A failed request to the API server; `status` is 0 without a response.

    The message is for administrators: it has the path, and often the service account. `detail` is the server's own.
    """

    def __init__(self, message: str, *, status: int = 0, detail: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail

    @property
    def cause(self) -> str:
        """The failure in words that users may read.

        A message of 401 or 403 names the operator's service account, so it is left out.
        """
        if not self.status:
            return "the API server did not respond"
        detail = "" if self.status in NOT_PERMITTED or not self.detail else f": {self.detail}"
        return f"the API server returned {self.status}{detail}"


class Unavailable(ClusterError):
    """No response, or a temporary failure; the same call may succeed soon."""


class NotFound(ClusterError):
    """The object, or its kind, does not exist."""


class Conflict(ClusterError):
    """The object exists already, has changed, or has another uid."""


class RequestRejected(ClusterError):
    """The request is forbidden or invalid; the same call would fail again."""


class NamespaceTerminating(RequestRejected):
    """The namespace is being deleted; nothing new can be created in it."""


class InvalidResponse(Unavailable):
    """The response is malformed, so it is not from an API server."""


class ResponseTooLarge(ClusterError):
    """The response is longer than the caller can hold."""


_TERMINATING: Final = "NamespaceTerminating"
_BY_STATUS: Final[dict[int, type[ClusterError]]] = {404: NotFound, 409: Conflict}


def error_of(method: str, path: str, status: int, raw: bytes | bytearray) -> ClusterError:
    """Return the exception for a response of status 300 or above.

    Args:
        method: HTTP method of the request.
        path: URL path of the request.
        status: HTTP status of the response.
        raw: Body of the response, usually a Status object.
    """
    document: Any
    causes: list[dict[str, str]] = []
    if status < 400:
        text = "redirects are not followed; set the address of the API server itself"
        return RequestRejected(f"{method} {path}: the API server returned {status}: {text}", status=status, detail=text)
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    if problem_of(document, STATUS) is None and "message" in document:
        message, causes = document["message"], (document.get("details") or {}).get("causes") or []
    else:
        message = raw[:200].decode(errors="replace").strip()
    kind = Unavailable if status in _TRANSIENT else _BY_STATUS.get(status, RequestRejected)
    if any(cause.get("reason") == _TERMINATING for cause in causes):
        kind = NamespaceTerminating
    return kind(f"{method} {path}: the API server returned {status}: {message}", status=status, detail=str(message))


def metadata_only_type(kind: str) -> str:
    """Return the Accept header that requests PartialObjectMetadata or a list of it."""
    return f"application/json;as={kind};g=meta.k8s.io;v=v1,application/json"


METADATA_LIST: Final = metadata_only_type("PartialObjectMetadataList")
TABLE: Final = metadata_only_type("Table").partition(",")[0]


def path_to(
    group: str,
    version: str,
    plural: str,
    *,
    namespace: str | None = None,
    name: str | None = None,
    sub: str | None = None,
) -> str:
    """Return the URL path of a collection, an object or a subresource.

    Args:
        group: API group; empty for the core group.
        version: Version of the group.
        plural: Plural name of the resource.
        namespace: Namespace; None for cluster-scoped resources and lists over all namespaces.
        name: Name of the object; None for the collection.
        sub: Subresource, such as `status`.

    Raises:
        NotFound: a part is not valid, so no such object can exist. Parts come from other people's objects, such as
            owner references, and must not lead to another path or a query.

    Example:
        path_to("batch", "v1", "jobs", namespace="ml", name="a")  # /apis/batch/v1/namespaces/ml/jobs/a
    """
    _check("group", group or "core", _GROUP)
    _check("version", version, _VERSION)
    _check("resource", plural, _LABEL)
    _check("namespace", "default" if namespace is None else namespace, _LABEL)
    _check("name", "any" if name is None else name, _NAME)
    _check("subresource", "any" if sub is None else sub, _LABEL)
    parts = ["/apis", group, version] if group else ["/api", version]
    if namespace is not None:
        parts += ["namespaces", namespace]
    parts += [part for part in (plural, name, sub) if part is not None]
    return "/".join(parts)


def _check(part: str, text: str, valid: re.Pattern[str]) -> None:
    if not valid.fullmatch(text):
        raise NotFound(f"{part}: {text[:100]!r} is not valid in Kubernetes, so there is no such object")
