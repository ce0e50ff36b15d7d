"""Real servers of S3 and of Azure's blobs: moto, MinIO and azurite."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from cluster.paths import E2E
from cluster.ports import free_port, free_ports
from cluster.sources import node_program
from cluster.tools import tool
from support.programs.environments import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that azurite documents; not a secret."""

_START_LIMIT_S = 120.0
_NO_CHECKS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_NO_CHECKS.check_hostname, _NO_CHECKS.verify_mode = False, ssl.CERT_NONE


@dataclass(frozen=True, slots=True)
class ObjectServer:
    """A running server.

    Attributes:
        url: Its address.
        scheme: `s3` or `az`.
        make_bucket: Creates an empty bucket or container.
    """

    url: str
    scheme: str
    make_bucket: Callable[[str], None]

    def environment(self, url: str = "") -> dict[str, str]:
        """Return the variables with which programs reach it, or a proxy before it at another address."""
        if self.scheme == "s3":
            return {
                "AWS_ENDPOINT_URL": url or self.url,
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test-secret",
                "AWS_REGION": "us-east-1",
            }
        return {
            "AZURE_STORAGE_ENDPOINT": f"{url or self.url}/{ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        }


@contextlib.contextmanager
def running_moto(*, page: int = 7) -> Iterator[ObjectServer]:
    """Run an empty S3 server in memory, on its own port on 127.0.0.1.

    Args:
        page: Objects in one response to a list.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(interpreter("moto")), str(E2E / "tools/moto/server.py"), "127.0.0.1", str(port)]
    with _running(command, {"MOTO_S3_DEFAULT_MAX_KEYS": str(page)}, f"{url}/moto-api/"):
        yield moto_at(url)


def moto_at(url: str) -> ObjectServer:
    """Return a running server of moto."""

    def make_bucket(name: str) -> None:
        _request("PUT", f"{url}/{name}", {})

    return ObjectServer(url, "s3", make_bucket)


@contextlib.contextmanager
def running_minio(folder: Path) -> Iterator[ObjectServer]:
    """Run an S3 server over an empty folder, on its own port on 127.0.0.1; it is built first (4 min)."""
    port, console = free_ports(2)
    url = f"http://127.0.0.1:{port}"
    addresses = ("--address", f"127.0.0.1:{port}", "--console-address", f"127.0.0.1:{console}")
    keys = {"MINIO_ROOT_USER": "test", "MINIO_ROOT_PASSWORD": "test-secret", "MINIO_UPDATE": "off"}

    def make_bucket(name: str) -> None:
        (folder / name).mkdir()

    with _running([str(tool("minio")), "server", *addresses, str(folder)], keys, f"{url}/minio/health/ready"):
        yield ObjectServer(url, "s3", make_bucket)


def restricted_s3_user(url: str, actions: Iterable[str]) -> dict[str, str]:
    """Return the variables of a user of moto with these rights only; from now on it checks the rights of all."""
    program = Path(__file__).parents[1] / "programs/restricted_s3_user.py"
    done = subprocess.run([interpreter("moto"), program, url, *actions], check=True, capture_output=True, timeout=120)
    variables: dict[str, str] = json.loads(done.stdout)
    return variables


@contextlib.contextmanager
def running_azurite(*, tls: tuple[Path, Path] | None = None) -> Iterator[ObjectServer]:
    """Run an empty server of Azure's blobs in memory, on its own port on 127.0.0.1.

    Args:
        tls: Files of a certificate and its key, for `https://`, which tokens of identities need.
    """
    port = free_port()
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    command = [
        *(str(tool("azurite")), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence"),
        *("--skipApiVersionCheck", "--silent", "--disableTelemetry"),
        *(("--cert", str(tls[0]), "--key", str(tls[1]), "--oauth", "basic") if tls else ()),
    ]
    with _running(command, {"NODE": node_program()}, url):
        yield azurite_at(url)


def azurite_at(url: str) -> ObjectServer:
    """Return a running server of azurite."""

    def make_bucket(name: str) -> None:
        path, date = f"/{ACCOUNT}/{name}", formatdate(usegmt=True)
        headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
        canonical = "".join(f"{name}:{value}\n" for name, value in headers.items())
        # The account is in the path, as on every emulator, and once more before it.
        text = "PUT" + "\n" * 12 + canonical + f"/{ACCOUNT}{path}\nrestype:container"
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{_signature(text)}"
        _request("PUT", f"{url}{path}?restype=container", headers)

    return ObjectServer(url, "az", make_bucket)


def shared_access_signature(container: str, permissions: str, expiry: datetime) -> str:
    """Return a SAS of a container, such as `rl` to read and list."""
    until = expiry.strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = (permissions, "", until, f"/blob/{ACCOUNT}/{container}", "", "", "", "2020-12-06", "c", *("",) * 7)
    values = {"sv": "2020-12-06", "sr": "c", "se": until, "sp": permissions, "sig": _signature("\n".join(lines))}
    return urlencode(values)


def _signature(text: str) -> str:
    return b64encode(hmac.digest(b64decode(KEY), text.encode(), hashlib.sha256)).decode()


def _request(method: str, url: str, headers: dict[str, str]) -> None:
    request = urllib.request.Request(url, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=_START_LIMIT_S, context=_NO_CHECKS) as answer:
        answer.read()


@contextlib.contextmanager
def _running(command: list[str], variables: dict[str, str], url: str) -> Iterator[None]:
    process = subprocess.Popen(
        command, env=os.environ | variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_ready(process, url)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"{url}: the server ended with {process.returncode} before it answered")
        try:
            with urllib.request.urlopen(url, timeout=5, context=_NO_CHECKS):
                return
        except urllib.error.HTTPError:
            return  # without a signature
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{url}: no response within {_START_LIMIT_S:.0f} s") from error
            time.sleep(0.05)
