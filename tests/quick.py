"""`make quick`: the cheap half of the gate, and the unit tests that a change can affect, the nearest first.

python tests/quick.py [BASE]
    BASE   the commit to compare with; default: where this branch left the main one
"""

import os
import sys
from pathlib import Path

from support.suite.bytecode import keep_bytecode
from support.suite.changes import changed_tests, default_base
from support.suite.stage_process import Stage
from support.suite.stages import all_passed, cores, run, summary

ROOT = Path(__file__).parent.parent
LOGS = ROOT / ".tools/tests"
# Tests that start later than that after the first one are skipped: two minutes on two cores, with the gate.
START_WITHIN_S = 60
# Each process imports all files first, which costs more than it gives where a change reaches half of the suite.
MOST_FILES = 100
GATE = Stage(
    "quick-gate",
    "style, types, prose, layers",
    ["make", "-s", "-j2", "lint", "types", "prose", "layers"],
    ROOT,
    "30 s when cached",
)


def main(arguments: list[str]) -> int:
    """Run both parts; return 1 if one did not pass."""
    base = arguments[0] if arguments and arguments[0] else default_base()
    files = changed_tests(base)
    chosen = files[:MOST_FILES]
    print(f"changes since {base} can affect {len(files)} test files: the nearest {len(chosen)} run, for a minute")
    stages = [GATE, *([tests(chosen)] if chosen else [])]
    keep_bytecode(os.environ)
    outcomes = run(stages, LOGS, limit=2)
    print(summary(stages, outcomes, LOGS))
    print("Before a merge, run `make check` and `make test`: this was a part of both.")
    return int(not all_passed(outcomes))


def tests(files: list[str]) -> Stage:
    """Return the stage that runs test files in this order."""
    markers = "not apiserver and not cluster and not peers"
    # One test at a time goes to a process, else the far ones of one part would run before the near ones of another.
    order = ["-p", "no:randomly", "-n", str(cores()), "--dist=load", "--maxschedchunk=1"]
    command = [sys.executable, "-u", "-m", "pytest", "-q", "--durations=5", *order, "-m", markers]
    return Stage("quick-tests", "tests", [*command, f"--start-within={START_WITHIN_S}", *files], ROOT, "90 s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
