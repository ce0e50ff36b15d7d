"""Health checks of the parts of a cluster."""

import http
import http.client
import json
import ssl
import urllib.parse
from typing import Any

from cluster.certificates import Certificates
from cluster.progress import ClusterError


def ready(url: str, path: str, certificates: Certificates) -> bool:
    """Return whether an HTTPS server answers 200 to the administrator."""
    return get(url, path, certificates)[0] == http.HTTPStatus.OK


def get(url: str, path: str, certificates: Certificates) -> tuple[int, Any]:
    """Send GET as administrator; return status and JSON body, or 0 and None without an answer."""
    context = ssl.create_default_context(cafile=str(certificates.ca))
    context.load_cert_chain(certificates.certificate("admin"), certificates.key("admin"))
    connection = http.client.HTTPSConnection(urllib.parse.urlsplit(url).netloc, timeout=5, context=context)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        connection.close()
    try:
        return response.status, json.loads(body)
    except ValueError:
        return response.status, None


def post(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a JSON body to a loopback port and return the JSON answer.

    Raises:
        ClusterError: no answer, or not 200.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ClusterError(f"POST {path} on port {port} failed: {error}") from error
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise ClusterError(f"POST {path} on port {port} failed with status {response.status}: {answer}")
    return answer


def healthy(port: int, path: str = "/health") -> bool:
    """Return whether an HTTP server on loopback answers 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
