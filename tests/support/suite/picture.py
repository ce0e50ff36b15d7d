"""The picture of a run of `make test`, from its logs: tests, times, skips with reasons, built tools; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

SLOWEST = 5
SKIPS_SHOWN = 8
FAILURES_SHOWN = 40
LINES_SHOWN = 400
"""Of the failures of a stage; the whole is in its log."""
CLOSING = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s")
SLOW = re.compile(r"^ *([\d.]+)s +(call|setup|teardown) +(\S.*)$")
COSTLY = re.compile(r"^([\d.]+)s processor (\S.*)$")
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (.*)$")
FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+\.py.*?)(?: - |$)")
STEP = re.compile(r"^(\S.*?)(?: \(about [^)]*\))? \.\.\.$")
DONE = re.compile(r"^  done in (.*)$")


@dataclass(frozen=True)
class Picture:
    """The contents of the log of a stage; `tests` is empty for a stage without tests."""

    tests: str
    slowest: tuple[str, ...]
    costliest: tuple[str, ...]
    skips: tuple[str, ...]
    failures: tuple[str, ...]
    made: tuple[str, ...]


def picture(log: str) -> Picture:
    """Read a log of pytest or of a preparation."""
    lines = log.splitlines()
    closing = [match[1] for line in lines if (match := CLOSING.match(line))]
    slow = sorted(((float(m[1]), m[2], m[3]) for line in lines if (m := SLOW.match(line))), reverse=True)
    return Picture(
        tests=closing[-1] if closing else "",
        slowest=tuple(f"{seconds:.0f} s {part} of {test}" for seconds, part, test in slow[:SLOWEST]),
        costliest=tuple(f"{float(m[1]):.0f} s for {m[2]}" for line in lines if (m := COSTLY.match(line)))[:SLOWEST],
        skips=tuple(f"{match[1]} times: {match[2]}" for line in lines if (match := SKIPPED.match(line))),
        failures=tuple(match[1] for line in lines if (match := FAILURE.match(line))),
        made=_made(lines),
    )


def failed_log(log: str) -> str:
    """Return the part of a log that explains its end: the failures as pytest shows them, else its last lines."""
    lines = log.rstrip().splitlines()
    titles = [at for at, line in enumerate(lines) if re.match(r"^=+ (?:FAILURES|ERRORS) =+$", line)]
    ends = [at for at, line in enumerate(lines) if re.match(r"^=+ (?:processor's|slowest|short test|warnings) ", line)]
    if not titles:
        return "\n".join(lines[-40:])
    shown = lines[titles[0] : next((end for end in ends if end > titles[0]), len(lines))]
    left_out = [f"… {len(shown) - LINES_SHOWN} lines are in the log"] if len(shown) > LINES_SHOWN else []
    return "\n".join(shown[:LINES_SHOWN] + left_out)


def table(rows: list[tuple[str, float, str, Picture]]) -> list[str]:
    """Return the lines of the table.

    Args:
        rows: Result, seconds and title of each stage, with its picture.
    """
    lines = []
    for result, seconds, title, each in rows:
        lines.append(f"{result:8} {seconds / 60:5.1f} min  {title}{': ' if each.tests else ''}{each.tests}")
        lines += [f"    slow: {test}" for test in each.slowest]
        lines += [f"    processor: {file}" for file in each.costliest]
        lines += [f"    skipped: {reason}" for reason in each.skips[:SKIPS_SHOWN]]
        if len(each.skips) > SKIPS_SHOWN:
            lines.append(f"    skipped: {len(each.skips) - SKIPS_SHOWN} more reasons")
        lines += [f"    made: {step}" for step in each.made]
        lines += [f"    failed: {test}" for test in each.failures[:FAILURES_SHOWN]]
        if len(each.failures) > FAILURES_SHOWN:
            lines.append(f"    failed: {len(each.failures) - FAILURES_SHOWN} more")
    return lines


def repeat(tests: tuple[str, ...], seed: int) -> str:
    """Return the command that runs tests again, in the same random order and with the same examples."""
    named = " ".join(f"'{test}'" for test in tests[:SLOWEST])
    return f".venv/bin/python -m pytest -q {' '.join(seeded(seed))} {named}"


def seeded(seed: int) -> list[str]:
    """Return pytest's options for the random order and the examples of a run."""
    return [f"--randomly-seed={seed}", f"--hypothesis-seed={seed}"]


def _made(lines: list[str]) -> tuple[str, ...]:
    """Return the steps that built or fetched something, with their times."""
    made: list[str] = []
    for line in lines:
        if match := STEP.match(line):
            made.append(match[1])
        elif made and (match := DONE.match(line)):
            made[-1] += f", {match[1]}"
    return tuple(made)
