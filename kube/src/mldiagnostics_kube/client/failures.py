"""Failures of a cluster as one message with its remedy; pure."""

from __future__ import annotations

import os
import socket
import ssl
from json import JSONDecodeError

import aiohttp
from mldiagnostics.errors import MLDiagnosticsError

from mldiagnostics_kube.client.apiserver import ClusterError, InvalidResponse, ResponseTooLarge, Unavailable

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
        case 0 if isinstance(error, InvalidResponse | ResponseTooLarge):
            problem = f"does not respond as an API server: {detail or error}"
            remedy = "check its address in the kubeconfig, or choose another context"
        case 0 if isinstance(error, Unavailable):
            problem = f"does not respond: {_last_cause(error)}"
            remedy = f"{_remedy(error.__cause__)}, or choose another context of the kubeconfig"
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


def connection_problem(failure: BaseException) -> str:
    """Return why a connection failed, without the terms and numbers of libraries.

    Args:
        failure: An `aiohttp.ClientError` or an OSError.

    Example:
        connection_problem(error)  # "connection refused by api.example:6443"
    """
    if isinstance(failure, aiohttp.ClientConnectorError):
        cause, address = failure.os_error, f"{failure.host}:{failure.port}"
        server = f"the proxy {address}" if isinstance(failure, aiohttp.ClientProxyConnectionError) else address
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate of {server} is not trusted: {cause.verify_message or 'it cannot be verified'}"
        if isinstance(cause, ssl.SSLError):
            return f"no TLS connection to {server}: {(cause.reason or 'unknown error').replace('_', ' ').lower()}"
        if isinstance(failure, aiohttp.ClientConnectorDNSError) or isinstance(cause, socket.gaierror):
            return f"the host name '{failure.host}' cannot be resolved"
        if isinstance(cause, ConnectionRefusedError):
            return f"connection refused by {server}"
        return f"cannot connect to {server}: {os.strerror(cause.errno).lower() if cause.errno else 'not reachable'}"
    if isinstance(failure, TimeoutError):
        return "no response in time"
    return " ".join(str(failure).split()) or type(failure).__name__


def _last_cause(error: ClusterError) -> str:
    """Return the cause of a failed connection, without the request."""
    return connection_problem(error.__cause__) if error.__cause__ else error.detail or str(error)


def _remedy(failure: BaseException | None) -> str:
    if isinstance(failure, aiohttp.ClientConnectorCertificateError):
        return "set certificate-authority of the cluster in the kubeconfig"
    if isinstance(failure, aiohttp.ClientSSLError):
        return "correct the server's address in the kubeconfig"
    return "check the network"
