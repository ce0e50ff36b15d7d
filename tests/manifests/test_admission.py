"""The admission policy of the chart, in the CEL of a real API server, and the operator decide alike."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from mldiagnostics.locations import BUCKET_SCHEMES
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.request import CaptureRequest, check
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.storage import run_root
from mldiagnostics_kube.client.apiserver import RequestRejected, path_to
from release.parts import OPERATOR
from release.render import rendered
from support.cluster.builders import connection, parsed
from support.cluster.definitions import connections, install

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mldiagnostics_kube.client.api_client import ApiClient

Object = dict[str, Any]

PURE: Final = 50_000
"""Locations for each policy."""
SENT: Final = 400
SENT_RUNS: Final = 100
IN_FLIGHT: Final = 16
ROOTS: Final = (
    *("gs://", "gs://shared", "gs://shared/", "gs://other/", "volume:///", "volume:///", "volume://", "volume:/"),
    *("s3://shared", "s3://my_bucket", "s3://other//", "az://shared/", "az://a.b/", "abfss://shared/", "s3://ab/"),
    *("abfss://shared@account.dfs.core.windows.net/", "abfss://shared@account.evil.example/", "S3://shared/"),
    *("abfss://shared@account.dfs.core.windows.net.evil.example/", "abfss://shared@a.b.dfs.core.windows.net"),
    *("pod:///", "pod://", "/", "/tmp/profiles/", "", "s3://b/", "gs:///", "GS://shared/"),
)
SEGMENTS: Final = (
    *("ml", "mlops", "tmp", "profiles", "data", "shared", "x", "a:b", "~", "", ".", "..", "...", "{namespace}"),
    *("gs:", "gs://shared", "volume:", "://", ":", "%2e%2e", "a b", "é", "x\ny", "\\", "a" * 255, "a" * 256, "'"),
)
BUCKETS_AND_VOLUME: Final = (*(f"{scheme}://" for scheme in BUCKET_SCHEMES), "volume:///")
LIMITS: Final = {"deadlineSeconds": 7200, "waitForPodsSeconds": 3600, "durationSeconds": 3600}
RULES: Final = {
    "policy.strictTenancy": True,
    "policy.allowedStorage": {
        "*": ["volume:///{namespace}", "gs://shared/{namespace}/x", "s3://shared", "az://shared/{namespace}"],
        "ml": [
            "/tmp/profiles",
            "pod:///data/",
            "gs://other",
            "s3://",
            "abfss://shared@account.dfs.core.windows.net/ml",
        ],
    },
}


def location(choose: random.Random) -> str:
    parts = choose.choices(SEGMENTS, k=choose.randrange(5))
    return choose.choice(ROOTS) + choose.choice(("/", "/", "//", "/./")).join(parts)


def objects(values: Object, namespace: str) -> dict[str, list[Object]]:
    by_kind: dict[str, list[Object]] = {}
    for item in rendered(OPERATOR, {**values, "watch.namespaces": [namespace]}):
        by_kind.setdefault(item["kind"], []).append(item)
    return by_kind


def policy_of(made: dict[str, list[Object]]) -> Policy:
    [text] = [item["data"]["policy.json"] for item in made["ConfigMap"] if "policy.json" in item.get("data", {})]
    return Policy.parse(text)


def admits(text: str, namespace: str, allowed: dict[str, list[str]], form: re.Pattern[str]) -> bool:
    """Decide as the expressions of the admission policy do, for many locations in little time."""
    if len(text) > 1024 or not form.fullmatch(text):
        return False
    root = next((root for root in BUCKETS_AND_VOLUME if text.startswith(root)), "/")
    path = text[len(root) :] if root != "/" else text.removeprefix("pod:///")
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    if "://" in path or ".." in segments or any(len(segment) > 255 for segment in segments):
        return False
    directory = root + "".join(f"{segment}/" for segment in segments)
    prefixes = [*allowed.get("*", ()), *allowed.get(namespace, ())]
    return any(directory.startswith(prefix.replace("{namespace}", namespace)) for prefix in prefixes)


def accepts(policy: Policy, namespace: str, **trigger: Any) -> bool:
    """Decide as the operator does."""
    capture = parsed(connection("capture", namespace=namespace, podName="a", **trigger))
    return isinstance(check(capture, policy), CaptureRequest)


def accepts_run(policy: Policy, namespace: str, text: str) -> bool:
    """Decide about the storage of a run as the operator does."""
    try:
        return str(run_root(text, namespace, policy)) != ""
    except ValueError:
        return False


def allowed_of(made: dict[str, list[Object]]) -> dict[str, list[str]]:
    variables = [each for item in made["ValidatingAdmissionPolicy"] for each in item["spec"]["variables"]]
    [text] = {each["expression"] for each in variables if each["name"] == "allowedStorage"}
    allowed: dict[str, list[str]] = json.loads(text)
    return allowed


def form_of(made: dict[str, list[Object]]) -> re.Pattern[str]:
    """Return the pattern of the admission policies, which is the same in all of them."""
    expressions = [
        each["expression"] for item in made["ValidatingAdmissionPolicy"] for each in item["spec"]["validations"]
    ]
    [form] = {
        match[1] for each in expressions if (match := re.search(r"variables\.location\.matches\('(.+?)'\)", each))
    }
    return re.compile(form.replace("$", r"\Z"))


def run(namespace: str, text: str | None) -> Object:
    return {
        "apiVersion": RUNS.api_version,
        "kind": RUNS.kind,
        "metadata": {"name": "run", "namespace": namespace},
        "spec": {} if text is None else {"storageLocation": text},
    }


@pytest.mark.parametrize("values", [{}, RULES], ids=["default", "rules"])
def test_every_location_has_the_same_verdict(values: Object) -> None:
    made = objects(values, "ml")
    policy, allowed, form = policy_of(made), allowed_of(made), form_of(made)
    choose = random.Random(12)
    texts = {location(choose) for _ in range(PURE)} - {""}
    verdicts = {text: accepts(policy, "ml", storageLocation=text) for text in texts}
    assert [text for text, verdict in verdicts.items() if admits(text, "ml", allowed, form) != verdict] == []
    assert 100 < sum(verdicts.values()) < len(texts) / 2
    assert [text for text, verdict in verdicts.items() if accepts_run(policy, "ml", text) != verdict] == []


@pytest.mark.apiserver
@pytest.mark.parametrize("values", [{}, RULES], ids=["default", "rules"])
async def test_the_api_server_has_the_same_verdict(cluster: ApiClient, namespace: str, values: Object) -> None:
    await install(cluster)
    await install(cluster, RUNS)
    values = json.loads(json.dumps(values).replace('"ml"', f'"{namespace}"'))
    made = objects(values, namespace)
    policy, allowed, form = policy_of(made), allowed_of(made), form_of(made)
    runs = path_to(*RUNS.gvr, namespace=namespace)
    kept = await cluster.create(runs, run(namespace, "gs://Kept/before/the/policy"))
    for kind, plural in (("Policy", "policies"), ("PolicyBinding", "policybindings")):
        for body in made[f"ValidatingAdmission{kind}"]:
            body["metadata"]["name"] += f"-{namespace}"
            if kind == "PolicyBinding":
                body["spec"]["policyName"] += f"-{namespace}"
            await cluster.create(path_to("admissionregistration.k8s.io", "v1", f"validatingadmission{plural}"), body)
    slots = asyncio.Semaphore(IN_FLIGHT)

    hostile = "gs://in-force/://"

    async def passes(request: Awaitable[Any]) -> bool:
        async with slots:
            try:
                await request
            except RequestRejected:
                return False
            return True

    async def admitted(trigger: Object) -> bool:
        body = connection("capture", namespace=namespace, podName="a", **trigger)
        return await passes(cluster.create(f"{connections(namespace)}?dryRun=All", body))

    async def admitted_run(text: str) -> bool:
        created = await passes(cluster.create(f"{runs}?dryRun=All", run(namespace, text) | {"metadata": {"name": "r"}}))
        changed = await passes(cluster.patch(f"{runs}/run?dryRun=All", {"spec": {"storageLocation": text}}))
        assert created == changed or text == hostile, text
        return created or changed

    async with asyncio.timeout(60):
        while await admitted({"storageLocation": hostile}):  # noqa: ASYNC110 - the API server is polled
            await asyncio.sleep(0.05)
        while await admitted_run(hostile):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
    choose = random.Random(12)
    everything = sorted({location(choose).replace("ml", namespace) for _ in range(PURE // 5)} - {""})
    good = [text for text in everything if admits(text, namespace, allowed, form)]
    texts = [*choose.sample(good, min(len(good), SENT // 2)), *choose.sample(everything, SENT // 2)]
    triggers: list[Object] = [{"storageLocation": text} for text in texts]
    triggers += [{field: limit + more} for field, limit in LIMITS.items() for more in (0, 1)]
    sent = await asyncio.gather(*map(admitted, triggers))
    ours = [accepts(policy, namespace, **trigger) for trigger in triggers]
    differing = zip(triggers, sent, ours, strict=True)
    assert [trigger for trigger, theirs, verdict in differing if theirs != verdict] == []

    few = texts[:: len(texts) // SENT_RUNS]
    by_run = await asyncio.gather(*map(admitted_run, few))
    assert [
        text for text, verdict in zip(few, by_run, strict=True) if accepts_run(policy, namespace, text) != verdict
    ] == []
    assert {True, False} == set(by_run)
    unchanged = {"metadata": {"labels": {"a": "b"}}, "spec": kept["spec"]}
    assert await passes(cluster.patch(f"{runs}/run", unchanged)), "a run from before the policy can still be changed"
    assert await passes(cluster.patch(f"{runs}/run", {"spec": {"storageLocation": None}}))
