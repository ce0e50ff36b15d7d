"""`make flakes`: run tests many times, in random order and under disturbances, and name those that were ever red.

python tests/flakes.py [-n RUNS] [--only DISTURBANCE[+DISTURBANCE]]... [TESTS]...
    TESTS   files or tests of pytest; default: the unit tests that the changes since the main branch can affect
"""

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

from support.suite.bytecode import keep_bytecode
from support.suite.changes import changed_tests, default_base
from support.suite.disturbances import Disturbance, chosen
from support.suite.environment import python_of
from support.suite.picture import picture, seeded
from support.suite.red_tests import Run, report
from support.suite.stages import cores

ROOT = Path(__file__).parent.parent
LOGS = ROOT / ".tools/tests/flakes"
UNIT = "not apiserver and not cluster and not peers"
HANGS = ["-o", "faulthandler_timeout=360", "-o", "faulthandler_exit_on_timeout=true"]


def main() -> int:
    """Run the tests; return 1 if one was ever red."""
    parser = argparse.ArgumentParser(prog="make flakes")
    parser.add_argument("-n", type=int, default=20, help="runs in all; default 20")
    parser.add_argument("-m", default=UNIT, help="marker expression; default: unit tests")
    parser.add_argument(
        "--only", action="append", default=[], help="a disturbance, or several with + between; default: all in turn"
    )
    parser.add_argument("--logs", type=Path, default=LOGS, help=f"folder of the logs; default {LOGS}")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    try:
        disturbances = chosen(options.only)
    except ValueError as error:
        parser.error(str(error))
    tests = options.tests or changed_tests(default_base())
    if not tests:
        print("no change can affect a test; choose some with TESTS=path")
        return 0
    keep_bytecode(os.environ)
    options.logs.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    try:
        for disturbance in possible(disturbances, options.n):
            log = options.logs / f"{len(runs):03}-{disturbance.name.replace('/', '-')}.log"
            runs.append(attempt(disturbance, ["-m", options.m, *tests], log))
    except KeyboardInterrupt:
        print("interrupted")
    lines = report(runs)
    print("\n".join(lines))
    return int(any(line.startswith("red ") for line in lines) or not runs)


def possible(disturbances: tuple[Disturbance, ...], number: int) -> list[Disturbance]:
    """Return as many runs, in turn of the disturbances that this machine can make; say why it cannot make others."""
    usable = []
    for each in disturbances[:number]:
        if not python_of(each.python):
            print(f"not run: {each.name}: uv cannot make an environment of Python {each.python}", flush=True)
        elif (tried := subprocess.run(each.command(["true"]), capture_output=True, text=True, check=False)).returncode:
            print(f"not run: {each.name}: {tried.stderr.strip()}", flush=True)
        else:
            usable.append(each)
    return [usable[index % len(usable)] for index in range(number)] if usable else []


def attempt(disturbance: Disturbance, tests: list[str], log: Path) -> Run:
    """Run the tests once."""
    seed = random.randrange(1_000_000)
    pytest = [str(python_of(disturbance.python)), "-u", "-m", "pytest", "-q"]
    side_by_side = ["-n", str(cores()), "--dist=worksteal"]
    command = disturbance.command([*pytest, *seeded(seed), *HANGS, *side_by_side, *tests])
    if folder := disturbance.variables.get("TMPDIR"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        ended = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False)
    run = Run(pytest, disturbance, seed, ended.returncode, log.read_text(errors="replace"))
    print(f"{disturbance.name}: {picture(run.log).tests or 'no tests'} ({log})", flush=True)
    return run


if __name__ == "__main__":
    sys.exit(main())
