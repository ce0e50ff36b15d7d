"""Requests to a real API server on behalf of any user, to test RBAC and admission."""

import base64
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

PROPAGATION_DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the API server; `body` is the object or a Status."""

    status: int
    body: dict[str, Any]

    @property
    def forbidden_by_rbac(self) -> bool:
        """Whether RBAC rejected the verb, before admission."""
        return self.status == 403 and " cannot " in self.message

    @property
    def message(self) -> str:
        """The message of a rejection."""
        return str(self.body.get("message", ""))


class Requests:
    """JSON requests with the administrator's certificate, on behalf of a user if one is named."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._address = urlsplit(cluster["server"]).netloc
        self._tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            for half in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[half]) + b"\n")
            pair.flush()
            self._tls.load_cert_chain(pair.name)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str | None = None,
        group: str | None = None,
        kind: str = "application/json",
    ) -> Answer:
        """Send one request; `kind` is its content type, and a user may have a group."""
        headers = {"Content-Type": kind, "Accept": "application/json"} | ({"Impersonate-User": user} if user else {})
        headers |= {"Impersonate-Group": group} if group else {}
        connection = http.client.HTTPSConnection(self._address, context=self._tls, timeout=30)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            raw = response.read()
            is_json = response.headers.get_content_type() == "application/json"
            return Answer(response.status, json.loads(raw or b"{}") if is_json else {"message": raw.decode()})
        finally:
            connection.close()

    def merge_patch(self, path: str, body: Any, *, user: str | None = None) -> Answer:
        """Change parts of an object."""
        return self("PATCH", path, body, user=user, kind="application/merge-patch+json")


def until(holds: Callable[[], bool], goal: str, *, deadline_s: float = PROPAGATION_DEADLINE_S) -> None:
    """Poll until a condition holds that controllers or caches bring about."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, f"{goal}: not within {deadline_s:g} s"
        time.sleep(0.1)
