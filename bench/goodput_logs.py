"""Writes logs of jobs faster than a recorder, with the same lines; checked against a recorder.

`goodput_logs.py PROFILE STEPS FOLDER` writes one.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from mldiagnostics.sinks.jsonl import LOCAL_SEGMENT_BYTES

from bench.goodput_jobs import JOB, LOGGER, Payload, payloads, started, time_of

INCARNATION = "0123abcd"
TEXTS = frozenset({"job_name", "custom_badput_event_type"})


def write(folder: Path, entries: Iterable[Payload]) -> None:
    """Write a log with the same files as a recorder's."""
    lines, head = _lines(entries), _head()
    (folder / "records").mkdir(parents=True)
    for number in itertools.count(1):
        size = 0
        with segment(folder, number).open("w") as file:
            file.write(head.replace('"values":[1.0]', f'"values":[{number:.1f}]'))
            for line in lines:
                size += file.write(line)
                if size > LOCAL_SEGMENT_BYTES:
                    break
            else:
                return


def segment(folder: Path, number: int) -> Path:
    return folder / f"records/a0-r0-{INCARNATION}-{number:05}.jsonl"


def line(payload: Payload, number: int) -> str:
    """Return the line of an entry; its id contains the number."""
    return _template(tuple(payload)) % (time_of(payload), *payload.values(), number)


@lru_cache
def _template(keys: tuple[str, ...]) -> str:
    fields = ",".join(f'"{key}":"%s"' if key in TEXTS else f'"{key}":%r' for key in keys)
    return (
        '{"v":1,"kind":"event","t":%r,"name":"goodput","rank":0,"attempt":0,'
        f'"payload":{{{fields},"event_id":"{INCARNATION}-%d"}}}}\n'
    )


def _lines(entries: Iterable[Payload]) -> Iterator[str]:
    return map(line, entries, itertools.count(1))


def _head() -> str:
    """Return the first line of a recorder's file; raise `RuntimeError` if other lines differ."""
    entries = [*payloads("maxtext", 3, 1.8e9), *payloads("events", 2, 1.8e9)]
    with tempfile.TemporaryDirectory() as folder:
        recorder = GoodputRecorder(JOB, LOGGER, logging_enabled=True, log=folder)
        for entry in entries:
            _record(recorder, entry)
        recorder.close()
        (file,) = Path(folder).rglob("*.jsonl")
        incarnation = file.stem.split("-")[2]
        head, *lines = file.read_text().replace(incarnation, INCARNATION).splitlines(keepends=True)
    if lines != [*_lines(entries)]:
        raise RuntimeError(f"a recorder writes\n{''.join(lines)}and not\n{''.join(_lines(entries))}")
    return head


def _record(recorder: GoodputRecorder, entry: Payload) -> None:
    """Record an entry with a recorder."""
    (*_, (key, moment)) = entry.items()
    step, kind = entry.get("step_count"), entry.get("custom_badput_event_type")
    record = getattr(recorder, f"record_{key}")
    if step is not None:
        record(step, moment)
    elif kind is not None:
        record(moment, kind)
    else:
        record(moment)


if __name__ == "__main__":
    profile, steps, folder = sys.argv[1:]
    write(Path(folder), payloads(profile, int(steps), started(profile, int(steps), time.time())))
