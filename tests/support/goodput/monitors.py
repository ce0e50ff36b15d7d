"""Results of monitors: curves that TensorBoard reads, and processes of this machine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

if TYPE_CHECKING:
    from collections.abc import Iterator


def curves(tensorboard: Path) -> dict[str, list[tuple[int, float]]]:
    """Step and value of every scalar that a monitor wrote, by tag, as TensorBoard finds them, in order of time.

    Of two files that begin in one second TensorBoard reads the one first whose name happens to come first.
    """
    accumulator: Any = EventAccumulator(str(tensorboard / "goodput"), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {
        tag: [(each.step, each.value) for each in sorted(accumulator.Scalars(tag), key=lambda each: each.wall_time)]
        for tag in accumulator.Tags()["scalars"]
    }


def last(tensorboard: Path, tag: str = "goodput/goodput") -> tuple[int, float] | None:
    """The last point of a curve, None without one."""
    points = curves(tensorboard).get(tag, []) if (tensorboard / "goodput").exists() else []
    return points[-1] if points else None


def alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def monitors_of(parent: int) -> list[int]:
    """The ids of the processes that monitor for a process."""
    return [pid for pid in _processes() if _parent(pid) == parent and _is_monitor(pid)]


def _processes() -> Iterator[int]:
    return (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _is_monitor(pid: int) -> bool:
    with suppress(OSError):
        return b"mldiagnostics.goodput.monitor" in Path(f"/proc/{pid}/cmdline").read_bytes() and alive(pid)
    return False
