"""What to look at when something on the cluster went wrong: logs, events and objects, as text."""

from cluster.progress import ClusterError

from demo.capturing import RESOURCE
from demo.installation import NAMESPACE, OPERATOR, WEBHOOK
from demo.kubectl import Kubectl

QUESTIONS = {
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
    """The last lines of each answer, by title; a question that fails says so instead."""
    return {title: _answer(kubectl, question) for title, question in QUESTIONS.items()}


def _answer(kubectl: Kubectl, question: tuple[str, ...]) -> str:
    try:
        return "\n".join(kubectl(*question, timeout_s=20).splitlines()[-LINES:])
    except ClusterError as error:
        return str(error)
