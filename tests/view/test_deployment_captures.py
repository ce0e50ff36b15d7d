"""Captures from the page of a deployment over a real API server: viewers need the rights that kubectl would need."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from mldiagnostics_api.names import REQUESTED_BY_ANNOTATION
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_view import authorization
from mldiagnostics_view.deployment import serving
from mldiagnostics_view.deployment_settings import load
from mldiagnostics_view.endpoints.bodies import Body
from support.cluster.api_server_faults import faulty_api_server
from support.cluster.definitions import connection, connections, install
from support.cluster.grants import grant
from support.cluster.view_deployments import HOST, SECRET, account_of_chart, environment, make_run, start_run

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer

pytestmark = pytest.mark.apiserver

ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}
RUN = "4f6c" + 60 * "0"
READ = ["get", "list", "watch"]
SEE = (
    {"apiGroups": ["diagon.gke.io"], "resources": ["mlruns"], "verbs": READ},
    {"apiGroups": [""], "resources": ["pods"], "verbs": READ},
)
LIMIT_S = 60
ORDER = {"orderId": "0123456789", "ranks": [0, 2], "durationMilliseconds": 1500}


def capturing(*verbs: str) -> dict[str, Any]:
    return {"apiGroups": ["diagon.gke.io"], "resources": [CONNECTIONS.plural], "verbs": list(verbs)}


class Proxy:
    """Sends requests of the page for a viewer."""

    def __init__(self, client: aiohttp.ClientSession, base: str) -> None:
        self._client, self._base = client, base

    async def send(self, method: str, path: str, user: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Host": HOST, "X-Mldiag-Proxy-Secret": SECRET, "X-Forwarded-User": user}
        origin = {"Origin": f"https://{HOST}"}
        async with self._client.request(method, self._base + path, headers={**headers, **origin}, json=body) as answer:
            return answer.status, await answer.json(content_type=None)

    async def until(self, user: str, status: int, **fields: Any) -> Any:
        """Wait until the run looks like this: the API server learns rights late."""
        answer: tuple[int, Any] = (0, {})
        try:
            async with asyncio.timeout(LIMIT_S):
                while answer[0] != status or not fields.items() <= answer[1].items():
                    answer = await self.send("GET", "", user)
        except TimeoutError:
            raise AssertionError(f"{user} still gets {answer}") from None
        return answer[1]


async def test_a_viewer_captures_what_kubectl_would_let_them(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await install(admin, RUNS)
    await install(admin)
    await grant(admin, namespace, "jane", *SEE, capturing("get", "create", "patch"))
    await grant(admin, namespace, "joe", *SEE, capturing("get"))
    await make_run(admin, namespace, "trainer", RUN, pods=3)
    monkeypatch.setattr(authorization, "VERDICT_AGE_S", 0)
    client = await account_of_chart(api_server, admin, tmp_path, release="captures", captures=True)
    config = load(environment(tmp_path, MLDIAG_VIEW_CAPTURES="true"))
    base = f"/api/runs/cluster/{namespace}:trainer"
    async with serving(config, client, ASSETS) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        proxy = Proxy(session, base)
        await proxy.until("jane", 200, canCapture=True, captureObstacle=None, canOpenXprof=False)
        status, problem = await proxy.send("POST", "/captures", "jane", ORDER)
        assert (status, problem["detail"]) == (
            409,
            "The run is not active but Pending: there is nothing to capture.",
        )
        await start_run(admin, namespace, "trainer")
        while (await proxy.until("jane", 200))["run"]["phase"] != "Active":
            pass

        await proxy.until("joe", 200, canCapture=False)
        refused = (
            "you may not create mldiagnosticsconnections.diagon.gke.io there; ask the administrator for this right"
        )
        for user, path, body, status, words in (
            ("joe", "/captures", ORDER, 403, refused),
            ("mallory", "/captures", ORDER, 404, "no such run"),
            ("jane", "/captures", {**ORDER, "ranks": [7]}, 409, "ranks: 7: not active any more"),
            ("jane", "/sessions/any/xprof", {}, 409, "opens no sessions in XProf"),
        ):
            got, problem = await proxy.send("POST", path, user, body)
            assert (got, words in problem["detail"]) == (status, True), problem
        assert await admin.items(connections(namespace), dict) == []

        status, made = await proxy.send("POST", "/captures", "jane", ORDER)
        assert (status, made["isStarted"], made["isComplete"]) == (201, False, False), made
        [body] = await admin.items(connections(namespace), dict)
        assert body["metadata"]["name"] == made["name"]
        assert body["metadata"]["annotations"][REQUESTED_BY_ANNOTATION] == "jane"
        trigger = body["spec"]["triggerCapture"]
        assert trigger["target"] == {"runRef": {"name": "trainer"}, "ranks": "0,2"}
        assert trigger["durationMilliseconds"] == 1500

        path = f"/captures/{made['name']}"
        assert (await proxy.send("GET", path, "joe"))[0] == 200
        assert (await proxy.send("GET", path, "mallory"))[0] == 404
        assert (await proxy.send("POST", f"{path}/cancel", "joe", {}))[0] == 403
        assert (await admin.get(f"{connections(namespace)}/{made['name']}"))["spec"].get("cancel") in (None, False)
        assert (await proxy.send("POST", f"{path}/cancel", "jane", {}))[0] == 200
        assert (await admin.get(f"{connections(namespace)}/{made['name']}"))["spec"]["cancel"] is True

        await admin.create(connections(namespace), connection("other"))  # not of this run
        for name in ("other", "none", "..%2f..%2fnone"):
            assert (await proxy.send("GET", f"/captures/{name}", "jane"))[0] == 404, name
        await forbid_long_captures(admin, namespace)
        status, problem, long = 201, {}, {**ORDER, "durationMilliseconds": 9000}
        async with asyncio.timeout(LIMIT_S):
            for number in itertools.count():  # until the API server has learned the policy
                long["orderId"] = f"{number:010}"
                status, problem = await proxy.send("POST", "/captures", "jane", long)
                if status != 201:
                    break
        assert (status, "captures end after 2 s" in problem["detail"]) == (422, True), problem


async def test_an_order_whose_response_is_lost_makes_one_capture(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await install(admin, RUNS)
    await install(admin)
    for user in ("jane", "joe"):
        await grant(admin, namespace, user, *SEE, capturing("get", "create"))
    await make_run(admin, namespace, "trainer", RUN, pods=3)
    await start_run(admin, namespace, "trainer")
    account = await account_of_chart(api_server, admin, tmp_path, release="faults", captures=True)
    await account.aclose()
    config = load(environment(tmp_path, MLDIAG_VIEW_CAPTURES="true"))
    base, path = f"/api/runs/cluster/{namespace}:trainer", "/captures"
    maybe = "The capture 'trainer-0123456789' may have been created; try again: the same order creates no second one."
    async with faulty_api_server(tmp_path / "kubeconfig", tmp_path) as cluster:
        client = await ApiClient.connect({"KUBECONFIG": str(cluster.kubeconfig)})
        async with (
            serving(config, client, ASSETS) as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        ):
            proxy = Proxy(session, base)
            for user in ("jane", "joe"):
                await proxy.until(user, 200, canCapture=True)
            while (await proxy.until("jane", 200))["run"]["phase"] != "Active":
                pass

            for request, status, words in (
                (
                    "GET pods",
                    409,
                    "the cluster does not respond, or you may not list pods. This attempt created no capture; try",
                ),
                ("POST mldiagnosticsconnections", 502, maybe),
            ):
                cluster.faults = {request: "hang"}
                got, problem = await proxy.send("POST", path, "jane", ORDER)
                assert (got, words in problem["detail"]) == (status, True), problem
                assert await admin.items(connections(namespace), dict) == []

            for fault, status in (("lose", 502), ("drop", 502)):
                cluster.faults = {"POST mldiagnosticsconnections": fault}
                got, problem = await proxy.send("POST", path, "jane", ORDER)
                assert (got, maybe in problem["detail"]) == (status, True), problem
                assert len(await admin.items(connections(namespace), dict)) == 1
            cluster.faults = {}
            status, made = await proxy.send("POST", path, "jane", ORDER)
            assert (status, made["name"]) == (201, "trainer-0123456789"), made
            for user, changes in (("joe", {}), ("jane", {"ranks": [1]}), ("jane", {"durationMilliseconds": 10})):
                status, problem = await proxy.send("POST", path, user, {**ORDER, **changes})
                assert (status, "already exists" in problem["detail"]) == (502, True), problem
            assert len(await admin.items(connections(namespace), dict)) == 1

            cluster.faults = {"POST subjectaccessreviews": "hang"}
            with_new_rights = await proxy.send("POST", path, "anna", ORDER)
            assert with_new_rights[0] == 502
            assert "does not respond: no response in time" in with_new_rights[1]["detail"]
            assert with_new_rights[1]["detail"].endswith("This attempt created no capture.")


async def forbid_long_captures(admin: ApiClient, namespace: str) -> None:
    """Reject captures of more than 2 s in a namespace, as the policy of the chart does."""
    rule = {"apiGroups": ["diagon.gke.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    expression = "object.spec.triggerCapture.durationMilliseconds <= 2000"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        },
        "validations": [{"expression": expression, "message": "captures end after 2 s"}],
    }
    policies = path_to("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
    await admin.create(policies, {"metadata": {"name": namespace}, "spec": spec})
    bindings = path_to("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
    binding = {"policyName": namespace, "validationActions": ["Deny"]}
    await admin.create(bindings, {"metadata": {"name": namespace}, "spec": binding})


@pytest.mark.parametrize("captures", [False, True])
async def test_captures_are_off_by_default_and_without_a_proxy(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path, captures: bool
) -> None:
    await install(admin, RUNS)
    await install(admin)
    await make_run(admin, namespace, "trainer", RUN)
    await start_run(admin, namespace, "trainer")
    client = await account_of_chart(api_server, admin, tmp_path, release="plain", captures=False)
    config = load({"MLDIAG_VIEW_PORT": "0", "MLDIAG_VIEW_CAPTURES": str(captures).lower()})
    reason = (
        "Captures from this page need an authenticating proxy, which names the viewer."
        if captures
        else "Captures from this page are turned off; the administrator can set view.captures."
    )
    headers = {"Sec-Fetch-Site": "same-origin"}
    base = f"/api/runs/cluster/{namespace}:trainer"
    async with (
        serving(config, client, ASSETS) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as page,
    ):
        async with asyncio.timeout(LIMIT_S):
            while True:
                async with page.get(base) as answer:
                    document = await answer.json(content_type=None)
                if answer.status == 200 and document["hosts"]:
                    break
        assert (document["canCapture"], document["captureObstacle"]) == (False, reason)
        async with page.post(f"{base}/captures", json={**ORDER, "ranks": [0]}) as answer:
            assert (answer.status, (await answer.json(content_type=None))["detail"]) == (403, reason)
    assert await admin.items(connections(namespace), dict) == []
