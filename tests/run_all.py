"""`make test`: the gate and unit tests while tools are built, then contract tests, then the cluster."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTEST = [sys.executable, "-m", "pytest", "-q"]
# Got while the unit tests run, those that they use first; a cluster gets what else it needs by itself.
CONTRACT_TOOLS = ["fake-gcs-server", "helm", "kubeconform", "kustomize", "etcd", "kube-apiserver"]
CONTRACT_TOOLS += ["kube-controller-manager", "kubectl", "jobset", "lws", "kuberay"]
TOOLS_LOG = ROOT / ".tools" / "tools.log"


@dataclass(frozen=True)
class Stage:
    """One command of the whole, with what a reader may expect of it."""

    name: str
    command: list[str]
    minutes_warm: float


BEFORE_TOOLS = (
    Stage("style, types, layers, generated files", ["make", "-s", "lint", "types", "layers", "generated"], 1.5),
    Stage("unit tests", [*PYTEST, "tests", "-m", "not apiserver and not cluster and not peers"], 2),
)
WITH_TOOLS = (
    Stage("contract tests", [*PYTEST, "tests", "e2e", "-m", "(apiserver or peers) and not cluster"], 5),
    Stage("cluster tests", [*PYTEST, "e2e", "-m", "cluster"], 5),
)


def run(stage: Stage) -> bool:
    print(f"\n==> {stage.name} (about {stage.minutes_warm:g} min)", flush=True)
    begun = time.monotonic()
    passed = subprocess.run(stage.command, cwd=ROOT, check=False).returncode == 0
    print(f"==> {stage.name}: {'passed' if passed else 'FAILED'} in {time.monotonic() - begun:.0f} s", flush=True)
    return passed


def wait_for_tools(tools: subprocess.Popen[bytes]) -> bool:
    """Follow the build of the tools; on failure show the end of its log."""
    print("\n==> tools of the cluster (seconds when cached, up to 30 min to build)", flush=True)
    shown = ""
    while True:
        try:
            tools.wait(timeout=30)
        except subprocess.TimeoutExpired:
            last = (TOOLS_LOG.read_text(errors="replace").splitlines() or [""])[-1]
            if last != shown:
                print(f"    {last}", flush=True)
            shown = last
            continue
        if tools.returncode:
            print(TOOLS_LOG.read_text(errors="replace")[-4000:], flush=True)
        return tools.returncode == 0


def main() -> int:
    TOOLS_LOG.parent.mkdir(exist_ok=True)
    with (
        TOOLS_LOG.open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "cluster", "tools", *CONTRACT_TOOLS],
            cwd=ROOT / "e2e",
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as tools,
    ):
        results = [(stage.name, run(stage)) for stage in BEFORE_TOOLS]
        results.append(("tools", wait_for_tools(tools)))
    if results[-1][1]:
        results += [(stage.name, run(stage)) for stage in WITH_TOOLS]
    failed = [name for name, passed in results if not passed]
    print(f"\n{len(results) - len(failed)} passed, {len(failed)} failed" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
