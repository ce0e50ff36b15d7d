"""Limits and usage of this process's control groups, version 1 and 2.

Format: docs.kernel.org/admin-guide/cgroup-v2 and -v1, cgroups(7).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIFIED = ""
"""Key of the single hierarchy of version 2; hierarchies of version 1 have their controller as key."""

_UNLIMITED_BYTES = 1 << 60
"""Version 1 writes "no limit" as the largest multiple of a page."""


@dataclass(frozen=True, slots=True)
class CgroupMount:
    """The mount of a hierarchy: its group `root` appears at `point`."""

    root: str
    point: str
    controllers: frozenset[str]


def parse_mounts(text: str) -> list[CgroupMount]:
    """Parse the hierarchies in /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        paths, options = left.split(), right.split()
        if len(paths) < 5 or len(options) < 3 or options[0] not in {"cgroup", "cgroup2"}:
            continue
        controllers = {UNIFIED} if options[0] == "cgroup2" else set(options[2].split(","))
        mounts.append(CgroupMount(_unescaped(paths[3]), _unescaped(paths[4]), frozenset(controllers)))
    return mounts


def parse_memberships(text: str) -> dict[str, str]:
    """Parse /proc/self/cgroup: controller -> the process's group."""
    groups = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and parts[2].startswith("/"):
            groups.update(dict.fromkeys(parts[1].split(","), parts[2]))
    return groups


class ControlGroups:
    """This process's control groups.

    Args:
        system: The root of the file system.
        proc: The process's directory in /proc.
    """

    def __init__(self, system: Path = Path("/"), proc: Path = Path("/proc/self")) -> None:
        mounts = parse_mounts(_text(proc / "mountinfo"))
        memberships = parse_memberships(_text(proc / "cgroup"))
        self._chains = {
            controller: _chain(system, mount, memberships[controller])
            for mount in mounts
            for controller in mount.controllers & memberships.keys()
        }

    def cores(self) -> float | None:
        """Return the process's CPU limit in cores; None without a limit."""
        limits = [
            *(_ratio(*_text(group / "cpu.max").split()[:2]) for group in self._chain(UNIFIED)),
            *(
                _ratio(_text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us"))
                for group in self._chain("cpu")
            ),
        ]
        return min((limit for limit in limits if limit), default=None)

    def cpu_s(self) -> float | None:
        """Return the group's CPU time in seconds."""
        for group in self._chain(UNIFIED)[:1]:
            for line in _text(group / "cpu.stat").splitlines():
                name, _, value = line.partition(" ")
                if name == "usage_usec" and (used := _number(value)) is not None:
                    return used / 1e6
        for group in self._chain("cpuacct")[:1]:
            if (used := _number(_text(group / "cpuacct.usage"))) is not None:
                return used / 1e9
        return None

    def memory_limit_bytes(self) -> int | None:
        """Return the process's memory limit in bytes; None without a limit."""
        limits = [
            *(_number(_text(group / "memory.max")) for group in self._chain(UNIFIED)),
            *(_number(_text(group / "memory.limit_in_bytes")) for group in self._chain("memory")),
        ]
        return min((limit for limit in limits if limit is not None and limit < _UNLIMITED_BYTES), default=None)

    def memory_bytes(self) -> int | None:
        """Return the group's working set in bytes, as the kubelet counts it.

        That is its usage without inactive file pages.
        """
        for group in self._chain(UNIFIED)[:1]:
            if (used := _number(_text(group / "memory.current"))) is not None:
                return max(0, used - _field(group / "memory.stat", "inactive_file"))
        for group in self._chain("memory")[:1]:
            if (used := _number(_text(group / "memory.usage_in_bytes"))) is not None:
                return max(0, used - _field(group / "memory.stat", "total_inactive_file"))
        return None

    def _chain(self, controller: str) -> tuple[Path, ...]:
        return self._chains.get(controller, ())


def _chain(system: Path, mount: CgroupMount, group: str) -> tuple[Path, ...]:
    """Return the directories of a group and of its visible parents, its own first."""
    top = system / mount.point.lstrip("/")
    try:
        inner = PurePosixPath(group).relative_to(mount.root)
    except ValueError:  # the cgroup namespace has another root: the mounted group is the process's
        inner = PurePosixPath()
    own = top / inner
    above = list(_up_to(own, top)) if ".." not in inner.parts else [top]
    return tuple(above)


def _up_to(own: Path, top: Path) -> Iterator[Path]:
    yield own
    while own != top:
        own = own.parent
        yield own


def _ratio(quota: str = "max", period: str = "") -> float | None:
    share, whole = _number(quota), _number(period)
    return share / whole if share is not None and whole and share > 0 else None


def _field(file: Path, name: str) -> int:
    for line in _text(file).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return _number(value) or 0
    return 0


def _number(text: str) -> int | None:
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() else None


def _unescaped(path: str) -> str:
    """Decode the escapes of blanks and backslashes in mountinfo."""
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")


def _text(file: Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return file.read_text()
    return ""
