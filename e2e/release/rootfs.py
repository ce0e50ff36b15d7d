"""Copy a virtual environment and all files that it needs into an empty root: no shell, no package manager.

python3 rootfs.py ROOT VENV [WRITABLE ...]

An image runs this while it is built, on any Debian with Python. WRITABLE are directories for the user of the image.
"""

import compileall
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from os import chown
from pathlib import Path

USER = 65532
# Parts of the standard library that start other programs, draw windows or install packages.
LEFT_OUT = (
    *("ensurepip", "idlelib", "lib2to3", "test", "tkinter", "_tkinter*", "turtledemo", "venv", "pydoc_data"),
    *("site-packages", "dist-packages", "config-*"),
)
# The C library and C++ extensions load these by name at run time.
LOADED = ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2", "libgcc_s.so.1")
NO_SHELL = "/usr/sbin/nologin"
FILES = {
    "etc/passwd": f"root:x:0:0:root:/root:{NO_SHELL}\nnonroot:x:{USER}:{USER}:nonroot:/tmp:{NO_SHELL}\n",
    "etc/group": f"root:x:0:\nnonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def main(root: Path, environment: Path, writable: Iterable[Path]) -> None:
    """Fill the root."""
    standard = Path(sysconfig.get_path("stdlib"))
    trees = [environment, standard]
    shutil.copytree(environment, below(root, environment), symlinks=True)
    shutil.copytree(
        standard, below(root, standard), ignore=shutil.ignore_patterns(*LEFT_OUT), ignore_dangling_symlinks=True
    )
    # Nothing is compiled at run time: the file system is read-only.
    compileall.compile_dir(below(root, standard), stripdir=root, quiet=2)
    interpreters = [linked(root, environment / "bin" / name) for name in ("python", "python3")]
    modules = [path for tree in trees for path in tree.rglob("*.so*") if (root / str(path).lstrip("/")).is_file()]
    libraries = sorted(needed([*interpreters, *modules]))
    libraries += [each for name in LOADED for each in beside(libraries, name)]
    outside = [path for path in libraries if not any(path.is_relative_to(tree) for tree in trees)]
    for path in outside:
        copy(root, path)
    certificates(root)
    for name, text in FILES.items():
        below(root, Path(name)).write_text(text)
    for name in ("etc/os-release", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/ssl/openssl.cnf"):
        copy(root, Path("/") / name)
    packages(root, [*outside, *interpreters])
    for path, mode, owner in [(Path("/tmp"), 0o1777, 0), *((path, 0o755, USER) for path in writable)]:
        below(root, path).mkdir(parents=True, exist_ok=True)
        below(root, path).chmod(mode)
        chown(below(root, path), owner, owner)
    subprocess.run(["/sbin/ldconfig", "-r", root], check=True)


def below(root: Path, path: Path) -> Path:
    """Return the place of an absolute or relative path in the root; its folder exists."""
    place = root / str(path).lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def copy(root: Path, path: Path) -> None:
    """Copy a file or folder to the same path, with the content of links instead of links."""
    if path.is_dir():
        shutil.copytree(path, below(root, path), dirs_exist_ok=True, ignore_dangling_symlinks=True)
    elif path.exists():
        shutil.copy(path, below(root, path))


def linked(root: Path, path: Path) -> Path:
    """Copy a chain of symbolic links and the file at its end; return the file."""
    while path.is_symlink():
        place, target = below(root, path), path.readlink()
        if not place.is_symlink():
            place.symlink_to(target)
        path = path.parent / target
    if not below(root, path).exists():
        copy(root, path)
    return path.resolve()


def needed(binaries: Sequence[Path]) -> set[Path]:
    """Return the shared libraries that binaries load, and those that these load."""
    listed = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}


def beside(libraries: Iterable[Path], name: str) -> Iterator[Path]:
    """Yield the library of this name in the folder of the C library."""
    yield from (
        path.with_name(name) for path in libraries if path.name == "libc.so.6" and path.with_name(name).exists()
    )


def certificates(root: Path) -> None:
    """Copy the certificates of the system to the places where OpenSSL reads them."""
    copy(root, Path("/etc/ssl/certs"))
    defaults = ssl.get_default_verify_paths()
    for name in (defaults.openssl_cafile, defaults.openssl_capath):
        path = Path(name)
        if path.exists() and not below(root, path).exists():
            below(root, path).symlink_to(path.resolve())


def packages(root: Path, paths: Sequence[Path]) -> None:
    """Record the Debian packages of these files where scanners look for them in images without a package manager."""
    whole = {str(path.resolve()) for path in paths}
    spellings = sorted({*map(str, paths), *whole, *(path.removeprefix("/usr") for path in whole)})
    owners = subprocess.run(["dpkg-query", "-S", *spellings], capture_output=True, text=True, check=False).stdout
    for name in sorted({line.partition(":")[0] for line in owners.splitlines()}):
        status = subprocess.run(["dpkg-query", "-s", name], capture_output=True, text=True, check=True).stdout
        below(root, Path("var/lib/dpkg/status.d") / name).write_text(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(each) for each in sys.argv[3:]])
