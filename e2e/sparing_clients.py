"""Clients kubectl and helm of the tests, which spare processes: a kubectl takes 100 ms of a processor, a helm 3 s."""

from functools import cached_property
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode

from cluster.progress import ClusterError
from cluster.tools import tool
from demo.installation import HELM_DEADLINE_S, NAMESPACE, Helm
from demo.kubectl import Kubectl, eventually
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.impersonation import Answer, Requests
from typing_extensions import override

SELECTORS = {"--selector": "labelSelector", "--field-selector": "fieldSelector"}
BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
"""After these kubectl tries again too."""


class SparingKubectl(Kubectl):
    """The command kubectl, whose `get` and `items` are requests of this process with the same result."""

    @override
    def get(self, *arguments: str) -> Any:
        """Return an object or a list; a list has objects of one kind.

        Raises:
            ClusterError: the API server has no such object or kind, or does not respond.
        """
        path = self._path(arguments)
        answer = eventually(lambda: self._answer(path), f"GET {path}", deadline_s=60)
        if answer.status != HTTPStatus.OK:
            raise ClusterError(f"GET {path}: {answer.message}")
        body = answer.body
        for item in body.get("items", [body]):
            item["metadata"].pop("managedFields", None)
            item |= {"apiVersion": body["apiVersion"], "kind": body["kind"].removesuffix("List")}
        return body

    def _answer(self, path: str) -> Answer | None:
        try:
            answer = self._requests("GET", path)
        except (OSError, HTTPException) as error:
            raise ClusterError(f"GET {path}: {error}") from error
        return None if answer.status in BUSY else answer

    def _path(self, arguments: tuple[str, ...]) -> str:
        """Return the URL path with the query that `kubectl get` requests for these arguments."""
        options = dict(each.partition("=")[::2] for each in arguments if each.startswith("--"))
        resource, _, name = "/".join(each for each in arguments if not each.startswith("--")).partition("/")
        plural, version, is_namespaced = self._resource(resource.lower())
        namespace = options.pop("--namespace", "default")
        is_everywhere = options.pop("--all-namespaces", None) is not None
        path = path_to(
            *version.rpartition("/")[::2],
            plural,
            namespace=namespace if is_namespaced and not is_everywhere else None,
            name=name or None,
        )
        query = urlencode({SELECTORS[option]: value for option, value in options.items()})
        return f"{path}?{query}"

    def _resource(self, word: str) -> tuple[str, str, bool]:
        """Return plural name, version and scope of a resource, which may be newer than the last look at all of them."""
        if word not in self._resources:
            for line in reversed(self("api-resources", "--no-headers").splitlines()):  # of a name the first counts
                plural, *short, version, is_namespaced, kind = line.replace(",", " ").split()
                names = [plural, kind.lower(), *short]
                names += [f"{name}.{version.rpartition('/')[0]}" for name in names]
                self._resources.update(dict.fromkeys(names, (plural, version, is_namespaced == "true")))
        if word not in self._resources:
            raise ClusterError(f"kubectl get {word}: the API server has no such resource")
        return self._resources[word]

    @cached_property
    def _resources(self) -> dict[str, tuple[str, str, bool]]:
        return {}

    @cached_property
    def _requests(self) -> Requests:
        return Requests(self.kubeconfig)


class SparingHelm(Helm):
    """The command helm, which does not repeat the last upgrade of a release, but waits until its pods are ready."""

    @override
    def __call__(self, *arguments: str) -> str:
        verb, *more = arguments
        if verb not in {"upgrade", "uninstall"}:
            return super().__call__(*arguments)
        release = next(each for each in more if not each.startswith("-"))
        if self._upgrades.get(release) == arguments:
            waiting = ("wait", "--for=condition=Available", "deployment", f"--timeout={HELM_DEADLINE_S}s")
            of_release = (f"--namespace={NAMESPACE}", f"--selector=app.kubernetes.io/instance={release}")
            return Kubectl(tool("kubectl"), self.kubeconfig)(*waiting, *of_release, timeout_s=HELM_DEADLINE_S + 10)
        self._upgrades.pop(release, None)
        output = super().__call__(*arguments)
        if verb == "upgrade":
            self._upgrades[release] = arguments
        return output

    @cached_property
    def _upgrades(self) -> dict[str, tuple[str, ...]]:
        return {}
