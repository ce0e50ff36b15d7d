"""Failures of a cluster as one message with its remedy; pure."""

from __future__ import annotations

from json import JSONDecodeError

from mldiagnostics.errors import MLDiagnosticsError

from mldiagnostics_kube.apiserver import ClusterError, Unavailable

__all__ = ["ClusterFailure", "failure_of"]

_UNSERVED = ("the server could not find the requested resource", "404 page not found")
"""Answers to requests for a kind that is not installed."""

_UNKNOWN_FIELD = "strict decoding error"
"""Part of the answer to an object with a field that the installed resource does not have."""


class ClusterFailure(MLDiagnosticsError):
    """The cluster cannot be reached or rejects the request; the message has a remedy.

    Args:
        message: The message.
        status: HTTP status of the API server, 0 without a response.
    """

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


def failure_of(error: ClusterError, *, cluster: str) -> ClusterFailure:
    """Return a failed request in words for the user.

    Args:
        error: The failure.
        cluster: Context and address of the API server.
    """
    detail = " ".join(error.detail.split())
    match error.status:
        case 0 if isinstance(error.__cause__, JSONDecodeError):
            problem = "does not respond as an API server: its response is not JSON"
            remedy = "log in to the proxy before it, or choose another context of the kubeconfig"
        case 0 if isinstance(error, Unavailable):
            problem = f"does not respond: {_last_cause(error)}"
            remedy = "check the network, or choose another context of the kubeconfig"
        case 401:
            problem = f"rejects the credentials: {detail or 'Unauthorized'}"
            remedy = "log in again, or choose another context of the kubeconfig"
        case 403:
            problem = f"refuses the request: {detail.rstrip('.')}"
            remedy = "ask the administrator for this right, or choose another namespace"
        case 404 if detail in _UNSERVED:
            problem = "does not have the resources of mldiagnostics"
            remedy = "install the operator's chart, or read files with --storage"
        case 400 if _UNKNOWN_FIELD in detail:
            problem = f"serves an older version of the resource: {detail.rpartition(_UNKNOWN_FIELD)[2].strip(': ')}"
            remedy = "upgrade the operator's chart; `mldiag doctor` compares the versions"
        case _:
            problem = detail.rstrip(".") or str(error)
            remedy = "run the command again" if isinstance(error, Unavailable) else "correct the request"
    return ClusterFailure(f"{cluster}: {problem}; {remedy}", status=error.status)


def _last_cause(error: ClusterError) -> str:
    """Return the cause of a failed connection, without the request."""
    return str(error.__cause__ or "").strip() or "no response in time"
