"""Tell the user what runs, how long it will take, and what went wrong."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class ClusterError(Exception):
    """A step that failed: what happened, to what, and what to do."""


def say(line: str) -> None:
    """Write one line of progress; standard output stays free for results."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def step(title: str, *, about_s: float = 0) -> Iterator[None]:
    """Announce a step with its usual duration, then say how long it took; an error names the step."""
    say(f"{title} (about {duration(about_s)}) ..." if about_s else f"{title} ...")
    start = time.monotonic()
    try:
        yield
    except ClusterError as error:
        raise ClusterError(f"{title} failed: {error}") from error
    say(f"  done in {duration(time.monotonic() - start)}")


def duration(seconds: float) -> str:
    """Seconds as people say them: `0.4 s`, `35 s`, `4 min 45 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def tail(text: str, lines: int = 20) -> str:
    """The last lines of a log, indented below the message that quotes it."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])
