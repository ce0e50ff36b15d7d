"""`make test`: every stage, or those that are named, side by side, and a table of them at the end.

A stage of many tests runs them in one process more than there are cores.

python tests/run_all.py [gate] [unit] [contract] [cluster] [apiserver]
"""

import os
import random
import signal
import sys
from collections.abc import MutableMapping
from pathlib import Path

from support.suite.bytecode import keep_bytecode
from support.suite.picture import seeded
from support.suite.stage_process import Stage
from support.suite.stages import all_passed, cores, run, summary

ROOT = Path(__file__).parent.parent
# Another one in each run; `SEED=` repeats the order and the examples of an earlier one.
SEED = int(os.environ.get("SEED") or random.randrange(1_000_000))
# Unbuffered, so that its log shows how far it is.
PYTEST = [sys.executable, "-u", "-m", "pytest", "-q", "--durations=15", *seeded(SEED)]
# The niceness of stages beside the tests of a cluster. These take longest, and a cluster computes also while its tests
# wait: the sooner they end, the less the whole run computes. With more, tests in these stages would miss deadlines.
ASIDE = 3
# A test waits about as long as it computes, so there is one more process than cores. Each imports all tests, and starts
# an API server of its own if one of its tests needs one.
SHARED = [*PYTEST, "-n", str(min(cores() + 1, 8)), "--dist=worksteal"]
# A test that holds the interpreter's lock does not see pytest's limit of 300 s, a signal: its threads are shown, and
# its process, one of several, ends.
SHARED += ["-o", "faulthandler_timeout=360", "-o", "faulthandler_exit_on_timeout=true"]
MODULE = ["env", f"PYTHONPATH={ROOT / 'e2e'}:{ROOT / 'tests'}", sys.executable, "-m"]
# Those of the unit tests come first: a test that waited for a compiler would fail at its time limit.
UNIT_TOOLS = ["azurite", "fake-gcs-server", "helm", "kubeconform", "otelcol"]
# In the order in which the tests use them; a cluster gets the others by itself.
CONTRACT_TOOLS = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "jobset", "lws", "kuberay"]
# The last module of the cluster tests needs them: nothing waits for their 8 minutes of compiling.
LAST_TOOLS = ["cert-manager-controller", "cert-manager-cainjector", "cert-manager-webhook"]
LOGS = ROOT / ".tools/tests"
# The tests of the cluster take longest and wait for pods most of the time: they start as early as they can, beside the
# gate and the unit tests, and then beside the contract tests.
LIMIT = min(3, cores() + 1)


def marked(*names: str) -> list[str]:
    """Return the options of pytest that leave files without tests of these marks unread."""
    return [f"--marked={name}" for name in names]


# Tools and environments are made beside the first stages.
STAGES = (
    Stage(
        "unit-tools",
        "tools of the unit tests",
        [sys.executable, "-m", "cluster", "tools", *UNIT_TOOLS],
        ROOT / "e2e",
        "seconds when cached, up to 10 min when not",
        prepares=True,
    ),
    Stage(
        "tools",
        "tools of the contract tests",
        [sys.executable, "-m", "cluster", "tools", *CONTRACT_TOOLS],
        ROOT / "e2e",
        "seconds when cached, up to 30 min when not",
        after=("unit-tools",),
        prepares=True,
    ),
    Stage(
        "last-tools",
        "tools of the last cluster tests",
        [sys.executable, "-m", "cluster", "tools", *LAST_TOOLS],
        ROOT / "e2e",
        "seconds when cached, up to 10 min when not",
        after=("tools",),
        prepares=True,
    ),
    Stage(
        "environments",
        "environments of the contract tests",
        [*MODULE, "support.programs.environments"],
        ROOT,
        "seconds when cached, up to 10 min when not",
        prepares=True,
    ),
    Stage(
        "parts",
        "tools and images of the cluster tests",
        # Images first: most of the tools that it then gets were made by the first stage meanwhile.
        [sys.executable, "-m", "demo.preparation", "images", "tools"],
        ROOT / "e2e",
        "1 min when cached, up to 15 min when not",
        prepares=True,
    ),
    Stage(
        "later-images",
        "images of later cluster tests",
        [*MODULE, "later_images"],
        ROOT,
        "1 min when cached, up to 5 min when not",
        after=("parts",),
        prepares=True,
    ),
    Stage("browser", "browser of the unit tests", [*MODULE, "support.programs.browser"], ROOT, "1 s", prepares=True),
    Stage(
        "gate", "style, types, prose, layers, generated files", ["make", "-s", "static"], ROOT, "1 min", niceness=ASIDE
    ),
    Stage(
        "unit",
        "unit tests",
        [*SHARED, "tests", "-m", "not apiserver and not cluster and not peers"],
        ROOT,
        "10 min",
        needs=("unit-tools", "browser"),
        niceness=ASIDE,
    ),
    Stage(
        "contract",
        "contract tests",
        [*SHARED, *marked("apiserver", "peers"), "tests", "e2e", "-m", "(apiserver or peers) and not cluster"],
        ROOT,
        "15 min",
        after=("unit",),
        needs=("unit-tools", "tools", "environments"),
        niceness=ASIDE,
    ),
    # A part of the contract tests, for other versions of Kubernetes (MLDIAG_KUBERNETES=).
    Stage(
        "apiserver",
        "tests with an API server",
        [*SHARED, *marked("apiserver"), "tests", "e2e", "-m", "apiserver and not cluster and not peers"],
        ROOT,
        "10 min",
        needs=("unit-tools", "tools"),
    ),
    Stage(
        "cluster",
        "cluster tests",
        [*PYTEST, *marked("cluster"), "e2e", "-m", "cluster"],
        ROOT,
        "20 min",
        after=("parts",),
        needs=("unit-tools", "tools"),
    ),
)
NAMES = [stage.name for stage in STAGES if not stage.prepares]
DEFAULT = ["parts", "later-images", "last-tools", *(name for name in NAMES if name != "apiserver")]


def main(names: list[str]) -> int:
    """Run the named stages, or the default ones; return 1 if one did not pass."""
    if unknown := [name for name in names if name not in NAMES]:
        print(f"{unknown[0]}: not a stage; choose from {', '.join(NAMES)}", file=sys.stderr)
        return 2
    chosen = chosen_stages(names)
    # The tests start hundreds of interpreters, and pytest rewrites the assertions of 500 files.
    keep_bytecode(os.environ)
    collect_less_garbage(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        outcomes = run(chosen, LOGS, limit=LIMIT)
    except KeyboardInterrupt:
        return 130
    print(summary(chosen, outcomes, LOGS, SEED))
    return int(not all_passed(outcomes))


def collect_less_garbage(environment: MutableMapping[str, str]) -> None:
    """Let helm and kubectl, which the tests start thousands of times, need a quarter less CPU time each."""
    environment.setdefault("GOGC", "400")


def chosen_stages(names: list[str]) -> list[Stage]:
    """Return the named stages, or the default ones, and their preparations.

    A cluster alone gets its tools and images by itself.
    """
    wanted = names or DEFAULT
    needed = {name for stage in STAGES if stage.name in wanted and stage.name != "cluster" for name in stage.needs}
    return [stage for stage in STAGES if stage.name in wanted or stage.name in needed]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
