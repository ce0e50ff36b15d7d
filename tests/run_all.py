"""`make test`: every stage, or those that are named, two at a time where there are two cores.

python tests/run_all.py [gate] [unit] [contract] [cluster] [apiserver]
"""

import signal
import sys
from pathlib import Path

from support.stages import Result, Stage, cores, run, summary

ROOT = Path(__file__).parent.parent
# Unbuffered, so that its log shows how far it is.
PYTEST = [sys.executable, "-u", "-m", "pytest", "-q", "--durations=15"]
# In the order in which the tests use them; a cluster gets the others by itself.
CONTRACT_TOOLS = ["fake-gcs-server", "helm", "kubeconform", "kustomize", "etcd", "kube-apiserver"]
CONTRACT_TOOLS += ["kube-controller-manager", "kubectl", "jobset", "lws", "kuberay", "otelcol"]
CONTRACT_TOOLS += ["cert-manager-controller", "cert-manager-cainjector", "cert-manager-webhook"]
LOGS = ROOT / ".tools/tests"
# Most tests compute on one core; more stages at a time than this make none of them faster.
LIMIT = 2

# Tools and environments are made beside the first stages. The cluster tests run alone: a whole cluster shares the cores
# with them, and its parts have deadlines.
STAGES = (
    Stage(
        "tools",
        "tools of the contract tests",
        [sys.executable, "-m", "cluster", "tools", *CONTRACT_TOOLS],
        ROOT / "e2e",
        "seconds when cached, up to 30 min when not",
        prepares=True,
    ),
    Stage(
        "environments",
        "environments of the contract tests",
        [sys.executable, "tests/support/environments.py"],
        ROOT,
        "seconds when cached, up to 10 min when not",
        prepares=True,
    ),
    Stage(
        "parts",
        "tools and images of the cluster tests",
        ["nice", "-n", "10", sys.executable, "-m", "demo.preparation"],
        ROOT / "e2e",
        "1 min when cached, up to 15 min when not",
        after=("tools",),
        prepares=True,
    ),
    Stage("gate", "style, types, prose, layers, generated files", ["make", "-s", "static"], ROOT, "1 min"),
    Stage(
        "contract",
        "contract tests",
        [*PYTEST, "tests", "e2e", "-m", "(apiserver or peers) and not cluster"],
        ROOT,
        "18 min",
        needs=("tools", "environments"),
    ),
    # A part of the contract tests, for other versions of Kubernetes (MLDIAG_KUBERNETES=).
    Stage(
        "apiserver",
        "tests with an API server",
        [*PYTEST, "tests", "e2e", "-m", "apiserver and not cluster and not peers"],
        ROOT,
        "10 min",
        needs=("tools",),
    ),
    Stage(
        "unit",
        "unit tests",
        [*PYTEST, "tests", "-m", "not apiserver and not cluster and not peers"],
        ROOT,
        "16 min",
        after=("gate",),
    ),
    Stage(
        "cluster",
        "cluster tests",
        [*PYTEST, "e2e", "-m", "cluster"],
        ROOT,
        "12 min",
        after=("parts", "gate", "unit", "contract"),
        needs=("tools",),
    ),
)
NAMES = [stage.name for stage in STAGES if not stage.prepares]
DEFAULT = ["parts", *(name for name in NAMES if name != "apiserver")]


def main(names: list[str]) -> int:
    """Run the named stages, or the default ones; return 1 if one did not pass."""
    if unknown := [name for name in names if name not in NAMES]:
        print(f"{unknown[0]}: not a stage; choose from {', '.join(NAMES)}", file=sys.stderr)
        return 2
    chosen = chosen_stages(names)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        results = run(chosen, LOGS, limit=min(LIMIT, cores()))
    except KeyboardInterrupt:
        return 130
    print(summary(chosen, results, LOGS))
    return int(any(result is not Result.PASSED for result in results.values()))


def chosen_stages(names: list[str]) -> list[Stage]:
    """Return the named stages, or the default ones, and their preparations.

    A cluster alone gets its tools and images by itself.
    """
    wanted = names or DEFAULT
    needed = {name for stage in STAGES if stage.name in wanted and stage.name != "cluster" for name in stage.needs}
    return [stage for stage in STAGES if stage.name in wanted or stage.name in needed]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
