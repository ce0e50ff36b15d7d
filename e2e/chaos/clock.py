"""Wall clocks of the operator's replicas that steps can change."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from demo.installation import HELM_DEADLINE_S, OPERATOR
from demo.installation import NAMESPACE as OPERATORS
from demo.kubectl import Kubectl

from chaos.replicas import Object

HERE = f"--namespace={OPERATORS}"
DEPLOYMENT = f"deployment/{OPERATOR}"
PATCH = {
    "volumes": [{"name": "chaos", "configMap": {"name": "programs"}}],
    "containers": [
        {
            "name": "operator",
            "env": [{"name": "PYTHONPATH", "value": "/chaos"}],
            "volumeMounts": [{"name": "chaos", "mountPath": "/chaos"}],
        }
    ],
}


@contextmanager
def adjustable(kubectl: Kubectl) -> Iterator[None]:
    """Run the operator's replicas with clocks that `step` changes, while the block runs."""
    kubectl("patch", DEPLOYMENT, HERE, f"--patch={json.dumps({'spec': {'template': {'spec': PATCH}}})}")
    try:
        _rolled_out(kubectl)
        yield
    finally:
        kubectl("rollout", "undo", DEPLOYMENT, HERE)
        _rolled_out(kubectl)


def step(kubectl: Kubectl, pod: Object, seconds: int) -> None:
    """Set the clock of a replica ahead by these seconds, or behind."""
    write = f"open('/var/lib/mldiagnostics/clock-offset', 'w').write('{seconds}')"
    kubectl("exec", pod["metadata"]["name"], HERE, "--", "python", "-c", write)


def _rolled_out(kubectl: Kubectl) -> None:
    kubectl("rollout", "status", DEPLOYMENT, HERE, f"--timeout={HELM_DEADLINE_S}s", timeout_s=HELM_DEADLINE_S + 10)
