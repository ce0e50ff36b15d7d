"""Progress messages and errors for the user."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class ClusterError(Exception):
    """Failed step; the message has the object, the problem and a remedy."""


def echo(line: str) -> None:
    """Write a line of progress to standard error; standard output is for results."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def step(title: str, *, about_s: float = 0) -> Iterator[None]:
    """Print a step with its usual duration, then the actual one; errors name the step."""
    echo(f"{title} (about {duration(about_s)}) ..." if about_s else f"{title} ...")
    start = time.monotonic()
    try:
        yield
    except ClusterError as error:
        raise ClusterError(f"{title}: failed: {error}") from error
    echo(f"  done in {duration(time.monotonic() - start)}")


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
