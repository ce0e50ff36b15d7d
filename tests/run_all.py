"""`make test`: every stage, or those that are named; tools and environments are made while the first ones run.

python tests/run_all.py [gate] [unit] [contract] [cluster]
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "--durations=15"]
# In the order in which the tests use them; a cluster gets the others by itself.
CONTRACT_TOOLS = ["fake-gcs-server", "helm", "kubeconform", "kustomize", "etcd", "kube-apiserver"]
CONTRACT_TOOLS += ["kube-controller-manager", "kubectl", "jobset", "lws", "kuberay", "otelcol"]
CONTRACT_TOOLS += ["cert-manager-controller", "cert-manager-cainjector", "cert-manager-webhook"]
LOGS = ROOT / ".tools"


@dataclass(frozen=True)
class Stage:
    """One command of the whole, with the minutes that it takes where everything is cached."""

    name: str
    command: list[str]
    minutes_warm: float
    needs_tools: bool = False


STAGES = {
    "gate": Stage("style, types, prose, layers, generated files", ["make", "-s", "static"], 1.5),
    "unit": Stage("unit tests", [*PYTEST, "tests", "-m", "not apiserver and not cluster and not peers"], 11),
    "contract": Stage(
        "contract tests", [*PYTEST, "tests", "e2e", "-m", "(apiserver or peers) and not cluster"], 14, needs_tools=True
    ),
    "cluster": Stage("cluster tests", [*PYTEST, "e2e", "-m", "cluster"], 16, needs_tools=True),
}


def run(stage: Stage) -> bool:
    print(f"\n==> {stage.name} (about {stage.minutes_warm:g} min)", flush=True)
    started = time.monotonic()
    passed = subprocess.run(stage.command, cwd=ROOT, check=False).returncode == 0
    print(f"==> {stage.name}: {'passed' if passed else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)
    return passed


class Preparation:
    """Something that is made while the first stages run; its output goes to a log."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name = name
        self._log = LOGS / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)

    def wait(self) -> bool:
        """Follow the log to the end; on failure show the end of it."""
        print(f"\n==> {self.name} (seconds when cached, up to 30 min when not)", flush=True)
        shown = ""
        while True:
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                last = (self._log.read_text(errors="replace").splitlines() or [""])[-1]
                if last != shown:
                    print(f"    {last}", flush=True)
                shown = last
                continue
            if self._process.returncode:
                print(self._log.read_text(errors="replace")[-4000:], flush=True)
            return self._process.returncode == 0

    def stop(self) -> None:
        """End it if it still runs."""
        self._process.terminate()
        self._process.wait()


def main(names: list[str]) -> int:
    """Run the stages of these names, all if there are none; return 1 if one failed."""
    if unknown := [name for name in names if name not in STAGES]:
        print(f"{unknown[0]}: not a stage; choose from {', '.join(STAGES)}", file=sys.stderr)
        return 2
    chosen = [stage for name, stage in STAGES.items() if not names or name in names]
    preparations = preparations_for(names)
    try:
        results = [(stage.name, run(stage)) for stage in chosen if not stage.needs_tools]
        prepared = [(preparation.name, preparation.wait()) for preparation in preparations]
    finally:
        for preparation in preparations:
            preparation.stop()
    results += prepared
    if all(passed for _, passed in prepared):
        results += [(stage.name, run(stage)) for stage in chosen if stage.needs_tools]
    failed = [name for name, passed in results if not passed]
    print(f"\n{len(results) - len(failed)} passed, {len(failed)} failed" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def preparations_for(names: list[str]) -> list[Preparation]:
    """Start to make what the contract tests need; a cluster gets its tools by itself."""
    if names and "contract" not in names:
        return []
    LOGS.mkdir(exist_ok=True)
    return [
        Preparation("tools", [sys.executable, "-m", "cluster", "tools", *CONTRACT_TOOLS], ROOT / "e2e"),
        Preparation("environments", [sys.executable, "tests/support/environments.py"], ROOT),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
