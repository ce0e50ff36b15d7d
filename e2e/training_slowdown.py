"""A training on a cluster gets slower at a secret step, and a capture that nobody asked for names the slow pod.

`make slowdown` runs it: it takes about ten minutes, most of them until the trigger knows the usual step time.
"""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import claim_scene
import pytest
from demo import capturing
from demo.kubectl import Kubectl, eventually
from demo.on_cluster import start_training
from injection_scene import placed, temporary_namespace
from mldiagnostics_api.names import CAPTURE_REASON_ANNOTATION, TRIGGER_LABEL

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

NAMESPACE = f"e2e-slowdown-{secrets.token_hex(2)}"
HERE = f"--namespace={NAMESPACE}"
SLOWS_DOWN = {"SLOW_INPUT_PROCESS": 1, "SLOW_INPUT_SECONDS": 0.4, "REST_SECONDS": 0.4}
"""Steps of half a second, so that the work of other tests hardly changes them."""
EARLIEST, LATEST = 900, 980
"""The secret step: after six to seven minutes, as a trigger needs five minutes of an attempt, without its first one."""
ON_RISE: dict[str, Any] = {
    "apiVersion": "diagon.gke.io/v1alpha1",
    "kind": "MLDiagnosticsSchedule",
    "metadata": {"name": "on-rise"},
    "spec": {
        "triggers": [{"type": "StepTimeRise", "thresholdPercent": 40}],
        "capture": {"durationSeconds": 10},
        "budget": {"captures": 1},
    },
}
NOTICED_S = 120
"""It takes about 90 s: five windows of 10 s, 20 s of settling, and the lag of the reported step time."""
RISE_DEADLINE_S, DEADLINE_S = 900, 240


@dataclass(frozen=True)
class Slowdown:
    """A training whose second pod reads its input slowly from a step on."""

    pods: list[str]
    step: int

    def began(self, kubectl: Kubectl) -> float:
        """Return when the step began, or up to a second later."""
        log = kubectl("logs", self.pods[1], HERE, "--timestamps")
        lines = re.findall(r"^(\S+) step (\d+):", log, re.MULTILINE)
        return next(moment(time) for time, number in lines if int(number) > self.step)


def moment(time: str) -> float:
    """Return the Unix time of a text as Kubernetes writes it."""
    return datetime.fromisoformat(time).timestamp()


@pytest.fixture(scope="module")
def operator_values(claim: str) -> dict[str, Any]:
    """Values of an operator whose Jobs see its traces."""
    return claim_scene.values(claim)


@pytest.fixture(scope="module")
def slowdown(kubectl: Kubectl, prepared: None, operator: None) -> Iterator[Slowdown]:  # noqa: ARG001 - must exist
    """Run a training that gets slower later."""
    with temporary_namespace(kubectl, NAMESPACE, {}):
        kubectl.apply(placed(ON_RISE, NAMESPACE))
        step = EARLIEST + secrets.randbelow(LATEST - EARLIEST)
        yield Slowdown(start_training(kubectl, NAMESPACE, **SLOWS_DOWN, SLOW_INPUT_FROM_STEP=step), step)


@pytest.mark.timeout(RISE_DEADLINE_S + DEADLINE_S)
def test_a_training_that_gets_slower_is_captured_and_the_slow_pod_is_named(
    kubectl: Kubectl, slowdown: Slowdown
) -> None:
    """Nobody asks: the trigger compares the run with itself."""
    of_trigger = f"--selector={TRIGGER_LABEL}=StepTimeRise"
    [made] = eventually(
        lambda: kubectl.items("mldc", of_trigger, HERE), "the trigger's capture", deadline_s=RISE_DEADLINE_S
    )
    name, began = made["metadata"]["name"], slowdown.began(kubectl)
    capturing.until_finished(kubectl, NAMESPACE, name, deadline_s=DEADLINE_S)
    capture = capturing.until_diagnosed(kubectl, NAMESPACE, name, deadline_s=DEADLINE_S)
    diagnosis = capture["status"]["diagnosis"]
    [slow] = [each for each in diagnosis["findings"] if each["code"] == "SlowHost"]
    assert [each["pod"] for each in slow["targets"]] == [slowdown.pods[1]], diagnosis
    assert re.fullmatch(
        r"StepTimeRise: the step time is \d+% above its usual value",
        made["metadata"]["annotations"][CAPTURE_REASON_ANNOTATION],
    )
    assert moment(made["metadata"]["creationTimestamp"]) - began < NOTICED_S
