"""Progress messages and errors for the user."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cluster import durations
from cluster.durations import Expected


class ClusterError(Exception):
    """Failed step; the message has the object, the problem and a remedy."""


def echo(line: str) -> None:
    """Write a line of progress to standard error; standard output is for results."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def step(title: str, *, about_s: float = 0) -> Iterator[None]:
    """Print a step with its expected duration, then the actual one, which is recorded; errors name the step.

    `about_s` is the usual duration on a machine with two cores; without it nothing is expected or recorded.
    """
    expected = Expected(title, about_s)
    seconds = durations.expected_s(expected, durations.load()) if about_s else 0
    echo(f"{title} (about {durations.about(seconds)}) ..." if about_s else f"{title} ...")
    start = time.monotonic()
    try:
        yield
    except ClusterError as error:
        raise ClusterError(f"{title}: failed: {error}") from error
    seconds = time.monotonic() - start
    if about_s:
        durations.record(expected, seconds)
    echo(f"  done in {duration(seconds)}")


def duration(seconds: float) -> str:
    """Format a duration: `0.4 s`, `35 s`, `4 min 45 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def tail(text: str, lines: int = 20) -> str:
    """Return the last lines of a log, indented."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])
