"""The tests that failed in some of many runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from support.suite.disturbances import Disturbance
from support.suite.picture import picture, seeded

# pytest could not run at all, or was killed; 1 means that tests failed, 5 that there was none.
NO_TESTS = 5


@dataclass(frozen=True)
class Run:
    """One run of the tests under a disturbance, by the command `pytest`."""

    pytest: Sequence[str]
    disturbance: Disturbance
    seed: int
    code: int
    log: str


def red_tests(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs in which each test failed, the most frequent first; `""` is a run that ended before its tests."""
    red: dict[str, list[Run]] = {}
    for run in runs:
        failures = picture(run.log).failures or (("",) if run.code not in {0, NO_TESTS} else ())
        for test in dict.fromkeys(failures):
            red.setdefault(test, []).append(run)
    return dict(sorted(red.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def report(runs: Sequence[Run]) -> list[str]:
    """Return a line for each red test, with its disturbances, and the command that repeats its first failure."""
    lines = []
    for test, failed in red_tests(runs).items():
        names = ", ".join(dict.fromkeys(run.disturbance.name for run in failed))
        lines.append(f"red in {len(failed)} of {len(runs)}: {test or 'pytest itself'} ({names})")
        lines.append(f"    {cause(failed[0].log, test)}")
        again = [*failed[0].pytest, *seeded(failed[0].seed), *([test] if test else [])]
        lines.append(f"    repeat with: {failed[0].disturbance.shown(again)}")
    return lines or [f"no test was red in {len(runs)} runs"]


def cause(log: str, test: str) -> str:
    """Return the first line of a test's error in a log; else the last line of the log."""
    title = re.escape(test.rpartition("::")[2])
    match = re.search(rf"^_+ .*{title} _+$.*?^E +(\S.*?)$", log, re.MULTILINE | re.DOTALL) if test else None
    return match[1] if match else (log.rstrip().splitlines() or ["no output"])[-1]
