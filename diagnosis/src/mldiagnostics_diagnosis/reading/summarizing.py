"""The summary of a recording. Pure."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mldiagnostics_diagnosis.phases import PHASES
from mldiagnostics_diagnosis.reading.host_activity import activities, transfers
from mldiagnostics_diagnosis.reading.partition import Layer, partition
from mldiagnostics_diagnosis.reading.recording import Device
from mldiagnostics_diagnosis.reading.shapes import shapes_of
from mldiagnostics_diagnosis.reading.steps import find_windows, main_thread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.reading.host_activity import Activity
    from mldiagnostics_diagnosis.reading.recording import RecordedTrace
    from mldiagnostics_diagnosis.reading.steps import StepSpan, Windows


VERSION = 1
MAX_STEPS = 64
STEPS_IN_RUN = 8
MAX_OPERATIONS = 20
MAX_ACTIVITIES = 8
"""Longest activities of the host among the operations."""
MAX_NAME = 80
PS_PER_S = 1e12
_DECIMALS = 6


def summarize(recording: RecordedTrace, *, host: str, trace_bytes: int) -> dict[str, Any]:
    """Return the content of a summary, the document of `HostSummary`.

    Args:
        recording: The contents of the trace.
        host: Stem of the trace's file name.
        trace_bytes: Size of the trace.
    """
    thread = main_thread(recording.threads)
    programs = frozenset(f"PjitFunction({module.removeprefix('jit_')})" for module in recording.modules)
    doing = activities(thread.events, programs) if thread else []
    choices = [(find_windows(device, thread), device) for device in recording.devices or [Device("none")]]
    windows, device = min(choices, key=lambda choice: _waiting(*choice))
    document: dict[str, Any] = {
        "v": VERSION,
        "host": host,
        "trace_bytes": trace_bytes,
        "platform": recording.platform,
        "device": _printable(recording.device_kind),
        "duration_s": _seconds(recording.last_ps - recording.first_ps),
        "program": _digest(recording.modules),
        "memory": _memory(recording),
        "counters": _counters(recording, device),
    }
    if windows is None or not windows.windows:
        return document
    of_device = [
        Layer([each for each in device.work if each[2] != "collective"]),
        Layer([each for each in device.work if each[2] == "collective"]),
        Layer(device.loops),
    ]
    # A launch explains the least: on a GPU it waits for the transfers of other threads.
    of_host = [
        [each for each in doing if not each.is_launch],
        transfers([each for each in recording.threads if each is not thread]),
        [each for each in doing if each.is_launch],
    ]
    layers = [*of_device, *(Layer([each[:3] for each in group]) for group in of_host)]
    spent = [partition(window.start_ps, window.end_ps, layers) for window in windows.windows]
    total = sum(sum(each.values()) for each in spent)
    document["steps"] = _steps(windows, spent, device)
    document["coverage"] = round(1 - sum(each["idle"] for each in spent) / total, 4) if total else 0.0
    explained = [(each, layers[: len(of_device) + number]) for number, group in enumerate(of_host) for each in group]
    document["operations"] = _operations(windows.windows, device, explained)
    _add_shapes(document["operations"], recording, {name for name, _ in device.totals})
    return document


def _waiting(windows: Windows | None, device: Device) -> tuple[float, int]:
    """Return the order of a host's devices.

    The slowest one waits least in its collectives, and works most.
    """
    waits = sum(each.end_ps - each.start_ps for each in device.collectives) if windows else 0
    return waits or float("inf"), -sum(end - start for start, end, _ in device.work)


def _steps(windows: Windows, spent: Sequence[dict[Phase, int]], device: Device) -> dict[str, Any]:
    rows = list(zip(windows.windows, spent, strict=True))
    stride = 1
    while sum(_is_kept(window.number, stride) for window, _ in rows) > MAX_STEPS:
        stride *= 2
    kept = [(window, phases) for window, phases in rows if _is_kept(window.number, stride)]
    has_collectives = all(window.first_collective_ps is not None for window, _ in kept)
    waits = Layer([(each.start_ps, each.end_ps, "collective") for each in device.collectives])
    return {
        "source": windows.source,
        "total": len(rows),
        "numbers": [window.number for window, _ in kept],
        "seconds": [_seconds(window.end_ps - window.start_ps) for window, _ in kept],
        "arrivals": [_seconds((window.first_collective_ps or 0) - window.start_ps) for window, _ in kept]
        if has_collectives
        else [],
        "waits": [
            _seconds(sum(end - start for start, end, _ in waits.between(window.start_ps, window.end_ps)))
            for window, _ in kept
        ]
        if has_collectives
        else [],
        "phases": {
            phase: [_seconds(phases[phase]) for _, phases in kept]
            for phase in PHASES
            if any(phases[phase] for _, phases in kept)
        },
    }


def _is_kept(number: int, stride: int) -> bool:
    """Return whether a step is kept.

    Runs of steps are kept, so that turns of hosts show, by number, so that all hosts agree.
    """
    return number // STEPS_IN_RUN % stride == 0


def _operations(
    windows: Sequence[StepSpan], device: Device, explained: Sequence[tuple[Activity, Sequence[Layer]]]
) -> list[dict[str, Any]]:
    """Return the longest operations per step: the device's, and delays by the host."""
    span = windows[-1].end_ps - windows[0].start_ps
    mean = sum(window.end_ps - window.start_ps for window in windows) / len(windows)
    ends, starts = [end for _, end, _ in device.work], [start for start, _, _ in device.work]
    whole = max(max(ends, default=0) - min(starts, default=0), span)
    steps = max(whole / mean, 1.0)
    rows = [
        (picoseconds / steps, count / steps, name, phase)
        for (name, phase), (picoseconds, count) in device.totals.items()
    ]
    of_host = sorted(_exposed(windows, explained), reverse=True)[:MAX_ACTIVITIES]
    of_device = sorted(rows, reverse=True)[: MAX_OPERATIONS - len(of_host)]
    return [
        {"name": _printable(name) or "?", "phase": phase, "seconds": _seconds(time), "count": round(count, 3)}
        for time, count, name, phase in sorted([*of_host, *of_device], reverse=True)
        if _seconds(time)
    ]


def _add_shapes(operations: Sequence[dict[str, Any]], recording: RecordedTrace, of_device: AbstractSet[str]) -> None:
    """Add the shapes of the device's operations that the trace's programs have."""
    wanted = of_device & {each["name"] for each in operations}
    shapes = shapes_of(recording.programs, recording.executed, wanted)
    for each in operations:
        each["shape"] = shapes.get(each["name"], "")


def _exposed(
    windows: Sequence[StepSpan], explained: Sequence[tuple[Activity, Sequence[Layer]]]
) -> list[tuple[float, float, str, Phase]]:
    """Return the host's activities per step while the device waits for them.

    Each has its picoseconds and its number. The layers beside an activity explain its time before it does.
    """
    spent: dict[tuple[str, Phase], list[int]] = defaultdict(lambda: [0, 0])
    for (start, end, phase, name, _), layers in explained:
        if start >= windows[0].start_ps and end <= windows[-1].end_ps:
            idle = partition(start, end, layers)["idle"]
            if idle:
                spent[name, phase][0] += idle
                spent[name, phase][1] += 1
    number = len(windows)
    return [(time / number, count / number, name, phase) for (name, phase), (time, count) in spent.items()]


def _memory(recording: RecordedTrace) -> dict[str, Any] | None:
    memory = recording.fullest_allocator
    return {"peak_bytes": memory.peak_bytes, "limit_bytes": memory.limit_bytes} if memory else None


def _counters(recording: RecordedTrace, device: Device) -> dict[str, Any] | None:
    """Return the shares of the device's peak rates while it computes.

    None if the trace lacks one of the two.
    """
    flops = recording.peaks.get("peak_teraflops_per_second", 0.0) * 1e12
    bandwidth = recording.peaks.get("peak_hbm_bw_gigabytes_per_second", 0.0) * 2**30
    busy = sum(end - start for start, end, phase in device.work if phase == "compute")
    if not busy or not (flops or bandwidth):
        return None
    seconds = busy / PS_PER_S * max(len(recording.devices), 1)
    return {
        "compute": _share(recording.flops / seconds, flops),
        "memory_bandwidth": _share(recording.memory_traffic_bytes / seconds, bandwidth),
    }


def _share(rate: float, peak: float) -> float | None:
    return round(min(rate / peak, 1.0), 4) if peak and rate else None


def _digest(modules: set[str]) -> str:
    return hashlib.sha256("\n".join(sorted(modules)).encode()).hexdigest()[:16] if modules else ""


def _seconds(picoseconds: float) -> float:
    return min(max(round(picoseconds / PS_PER_S, _DECIMALS), 0.0), 1e6)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:MAX_NAME])
