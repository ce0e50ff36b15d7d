"""Runs of workloads as the tests see them: their MLRuns, waits, and changes of the workloads."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from demo.capturing import VOLUME_ROOT
from demo.installation import NAMESPACE, OPERATOR
from demo.kubectl import Kubectl, eventually
from injection_scene import Object

DEADLINE_S = 240
# Ray starts within 20 s, on a busy machine within 100 s; it ends and starts again if that was too slow for itself.
RAY_DEADLINE_S = 420
LIST_FILES = """
import pathlib, sys
root = pathlib.Path(*sys.argv[1:])
print(*sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()), sep="\\n")
"""
Condition = Callable[[Object], Any]


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a namespace. A workload is named by kind and name: `JobSet/trainer`."""

    kubectl: Kubectl
    namespace: str

    @property
    def here(self) -> str:
        """Argument of kubectl that selects the namespace."""
        return f"--namespace={self.namespace}"

    def all(self) -> list[Object]:
        """Return all runs."""
        return self.kubectl.items("mlruns", self.here)

    def until(self, workload: str, holds: Condition) -> Object:
        """Wait until the status of a workload's run meets the condition; return the run."""

        def poll() -> Object | None:
            mine = (run for run in self.all() if run.get("status", {}).get("workload") == workload)
            return next((run for run in mine if holds(run["status"])), None)

        return eventually(poll, f"the run of {workload}", deadline_s=deadline_s(workload))

    def wait(self, run: Object, condition: str) -> None:
        """Wait for a condition of a run with `kubectl wait`."""
        waiting = ("wait", "mlrun", run["metadata"]["name"], self.here, f"--for=condition={condition}")
        self.kubectl(*waiting, f"--timeout={DEADLINE_S}s", timeout_s=DEADLINE_S + 10)

    def story(self, run: Object, last: str) -> list[Object]:
        """Return the events about a run, the oldest first, once there is one with the reason `last`.

        An event follows the status that it is about.
        """
        selected = f"--field-selector=involvedObject.uid={run['metadata']['uid']}"

        def poll() -> list[Object] | None:
            events = self.kubectl.items("events", self.here, selected)
            return events if last in {event["reason"] for event in events} else None

        events = eventually(poll, f"event {last} of {run['metadata']['name']}", deadline_s=DEADLINE_S)
        return sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def files_in_volume(self, run: Object) -> list[str]:
        """Return the files of a run in the volumes of all replicas of the operator."""
        files: list[str] = []
        there = f"--namespace={NAMESPACE}"
        for pod in self.kubectl.items("pods", there, f"--selector=app.kubernetes.io/name={OPERATOR}"):
            program = ("python", "-c", LIST_FILES, VOLUME_ROOT, run["status"]["runId"])
            files += self.kubectl("exec", pod["metadata"]["name"], there, "--", *program).split()
        return files

    def change(self, workload: str, **spec: Any) -> None:
        """Change fields of a workload's spec."""
        self.kubectl("patch", workload, self.here, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def delete(self, workload: str) -> None:
        """Delete a workload without waiting for its end."""
        self.kubectl("delete", workload, self.here, "--wait=false")


def deadline_s(workload: str) -> float:
    """Return how long a test waits for the next state of a workload."""
    return RAY_DEADLINE_S if workload.startswith("RayJob/") else DEADLINE_S


def phase(expected: str) -> Condition:
    """Return the condition that a run is in a phase."""
    return lambda status: status["phase"] == expected


def in_attempt(number: int, expected: str) -> Condition:
    """Return the condition that a run is in an attempt and a phase."""
    return lambda status: (status.get("attempt"), status["phase"]) == (number, expected)


def truths(status: Object) -> dict[str, str]:
    """Return the status of each condition by its type."""
    return {condition["type"]: condition["status"] for condition in status.get("conditions", ())}


def waits(status: Object) -> bool:
    """Return whether the run waits because its workload is suspended."""
    return (status["phase"], status.get("reason"), truths(status).get("Admitted")) == ("Pending", "Suspended", "False")
