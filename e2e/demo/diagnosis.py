"""Logs, events and objects of a cluster, as text for the diagnosis of a failure."""

from cluster.progress import ClusterError

from demo.capturing import RESOURCE
from demo.installation import NAMESPACE, OPERATOR, WEBHOOK
from demo.kubectl import Kubectl

COMMANDS = {
    "pods": ("get", "pods", "--all-namespaces", "--output=wide"),
    "captures": ("get", RESOURCE, "--all-namespaces", "--output=wide"),
    "events": ("get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp"),
    "operator": (
        "logs", f"--namespace={NAMESPACE}", f"--selector=app.kubernetes.io/name={OPERATOR}",
        "--tail=60", "--prefix", "--all-containers",
    ),
    "webhook": (
        "logs", f"--namespace={NAMESPACE}", f"--selector=app.kubernetes.io/name={WEBHOOK}",
        "--tail=20", "--prefix", "--all-containers",
    ),
}  # fmt: skip
LINES = 60


def collect(kubectl: Kubectl) -> dict[str, str]:
    """Return the last lines of each command's output, or its error, by title."""
    return {title: _output(kubectl, command) for title, command in COMMANDS.items()}


def _output(kubectl: Kubectl, command: tuple[str, ...]) -> str:
    try:
        return "\n".join(kubectl(*command, timeout_s=20).splitlines()[-LINES:])
    except ClusterError as error:
        return str(error)
