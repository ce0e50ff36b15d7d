"""The bounds and the use of this process's control groups, version 1 and 2 (docs.kernel.org/admin-guide/cgroup-v2)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIFIED = ""
"""How the one hierarchy of version 2 is called here; those of version 1 go by their controller."""

_UNBOUNDED_BYTES = 1 << 60
"""Version 1 writes an absent bound as the largest multiple of a page."""


@dataclass(frozen=True, slots=True)
class CgroupMount:
    """A hierarchy's place in the file system: the group `root` of it appears at `point`."""

    root: str
    point: str
    controllers: frozenset[str]


def parse_mounts(text: str) -> list[CgroupMount]:
    """Read the hierarchies out of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    found = []
    for line in text.splitlines():
        place, _, kind = line.partition(" - ")
        places, kinds = place.split(), kind.split()
        if len(places) < 5 or len(kinds) < 3 or kinds[0] not in {"cgroup", "cgroup2"}:
            continue
        controllers = {UNIFIED} if kinds[0] == "cgroup2" else set(kinds[2].split(","))
        found.append(CgroupMount(_unescaped(places[3]), _unescaped(places[4]), frozenset(controllers)))
    return found


def parse_memberships(text: str) -> dict[str, str]:
    """Read which group a process is in, by controller, out of /proc/self/cgroup (cgroups(7))."""
    found = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and parts[2].startswith("/"):
            found.update(dict.fromkeys(parts[1].split(","), parts[2]))
    return found


class ControlGroups:
    """This process's groups; `system` is the root of the file system and `proc` the process's folder in /proc."""

    def __init__(self, system: Path = Path("/"), proc: Path = Path("/proc/self")) -> None:
        mounts = parse_mounts(_text(proc / "mountinfo"))
        memberships = parse_memberships(_text(proc / "cgroup"))
        self._chains = {
            controller: _chain(system, mount, memberships[controller])
            for mount in mounts
            for controller in mount.controllers & memberships.keys()
        }

    def cores(self) -> float | None:
        """Return how many cores' time the process may use at most; None without a bound."""
        bounds = [
            *(_ratio(*_text(group / "cpu.max").split()[:2]) for group in self._chain(UNIFIED)),
            *(
                _ratio(_text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us"))
                for group in self._chain("cpu")
            ),
        ]
        return min((bound for bound in bounds if bound), default=None)

    def cpu_s(self) -> float | None:
        """Return the CPU time that the group has used, in seconds."""
        for group in self._chain(UNIFIED)[:1]:
            for line in _text(group / "cpu.stat").splitlines():
                name, _, value = line.partition(" ")
                if name == "usage_usec" and (used := _number(value)) is not None:
                    return used / 1e6
        for group in self._chain("cpuacct")[:1]:
            if (used := _number(_text(group / "cpuacct.usage"))) is not None:
                return used / 1e9
        return None

    def memory_bound_bytes(self) -> int | None:
        """Return how much memory the process may use at most; None without a bound."""
        bounds = [
            *(_number(_text(group / "memory.max")) for group in self._chain(UNIFIED)),
            *(_number(_text(group / "memory.limit_in_bytes")) for group in self._chain("memory")),
        ]
        return min((bound for bound in bounds if bound is not None and bound < _UNBOUNDED_BYTES), default=None)

    def memory_bytes(self) -> int | None:
        """Return the group's working set, as the kubelet counts it: what is used, less file pages out of use."""
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
    """Return the folders of a group and of those above it that can be seen from here, its own first."""
    top = system / mount.point.lstrip("/")
    try:
        inner = PurePosixPath(group).relative_to(mount.root)
    except ValueError:  # seen through a namespace that begins elsewhere: what is mounted is ours
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
    """Undo what mountinfo does to blanks and backslashes in paths."""
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")


def _text(file: Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return file.read_text()
    return ""
