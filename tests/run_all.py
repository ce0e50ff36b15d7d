"""`make test`: the gate and unit tests while tools and environments are made, then contract tests, then the cluster."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTEST = [sys.executable, "-m", "pytest", "-q"]
# Got while the unit tests run, those that they use first; a cluster gets what else it needs by itself.
CONTRACT_TOOLS = ["fake-gcs-server", "helm", "kubeconform", "kustomize", "etcd", "kube-apiserver"]
CONTRACT_TOOLS += ["kube-controller-manager", "kubectl", "jobset", "lws", "kuberay", "otelcol"]
CONTRACT_TOOLS += ["cert-manager-controller", "cert-manager-cainjector", "cert-manager-webhook"]
LOGS = ROOT / ".tools"


@dataclass(frozen=True)
class Stage:
    """One command of the whole, with what a reader may expect of it."""

    name: str
    command: list[str]
    minutes_warm: float


BEFORE_TOOLS = (
    Stage("style, types, layers, generated files", ["make", "-s", "lint", "types", "layers", "generated"], 1.5),
    Stage("unit tests", [*PYTEST, "tests", "-m", "not apiserver and not cluster and not peers"], 7),
)
WITH_TOOLS = (
    Stage("contract tests", [*PYTEST, "tests", "e2e", "-m", "(apiserver or peers) and not cluster"], 10),
    Stage("cluster tests", [*PYTEST, "e2e", "-m", "cluster"], 10),
)


def run(stage: Stage) -> bool:
    print(f"\n==> {stage.name} (about {stage.minutes_warm:g} min)", flush=True)
    begun = time.monotonic()
    passed = subprocess.run(stage.command, cwd=ROOT, check=False).returncode == 0
    print(f"==> {stage.name}: {'passed' if passed else 'FAILED'} in {time.monotonic() - begun:.0f} s", flush=True)
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


def main() -> int:
    LOGS.mkdir(exist_ok=True)
    preparations = (
        Preparation("tools", [sys.executable, "-m", "cluster", "tools", *CONTRACT_TOOLS], ROOT / "e2e"),
        Preparation("environments", [sys.executable, "tests/support/environments.py"], ROOT),
    )
    try:
        results = [(stage.name, run(stage)) for stage in BEFORE_TOOLS]
        made = [(preparation.name, preparation.wait()) for preparation in preparations]
    finally:
        for preparation in preparations:
            preparation.stop()
    results += made
    if all(passed for _, passed in made):
        results += [(stage.name, run(stage)) for stage in WITH_TOOLS]
    failed = [name for name, passed in results if not passed]
    print(f"\n{len(results) - len(failed)} passed, {len(failed)} failed" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
