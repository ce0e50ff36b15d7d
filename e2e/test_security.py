"""Permissions on a real API server: the admission policy, the operator's roles and the users' roles."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cluster.envtest import apiserver
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import check
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection
from mldiagnostics_api.workloads.kinds import WORKLOADS
from release.parts import NAMESPACE, OPERATOR
from release.render import helm, rendered, setting
from support.cluster.impersonation import Answer, Requests, until

pytestmark = pytest.mark.apiserver

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{OPERATOR.name}"
GROUP = "/apis/diagon.gke.io/v1alpha1"
POLICY = {
    "policy.strictTenancy": True,
    "policy.maxDurationSeconds": 60,
    "policy.crossNamespaces": ["b"],
    "policy.allowedStorage": {"*": ["volume:///shared"], "a": ["gs://team-a/profiles", "/tmp/profiles"]},
}
# User -> namespace -> ClusterRole: `capturer` and `traveller` may capture, the others have roles of Kubernetes.
PEOPLE = {
    "capturer": {"a": f"{OPERATOR.name}-capture"},
    "traveller": {"a": f"{OPERATOR.name}-capture", "b": f"{OPERATOR.name}-capture", "c": f"{OPERATOR.name}-capture"},
    "admin": {"a": "admin"},
    "editor": {"a": "edit"},
    "viewer": {"a": "view"},
    "stranger": {},
}


@pytest.fixture(scope="module")
def requests() -> Iterator[Requests]:
    """API server with the installed chart and the users of PEOPLE."""
    with apiserver(controller_manager=True) as server:
        requests = Requests(server.kubeconfig)
        for namespace in "abc":
            made = requests("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            assert made.status == 201, made
        values = [argument for key, value in POLICY.items() for argument in ("--set-json", setting(key, value))]
        where = [f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}", "--create-namespace"]
        helm("install", OPERATOR.name, *where, *values, chart=OPERATOR.chart)
        for person, roles in PEOPLE.items():
            for namespace, role in roles.items():
                bind(requests, person, namespace, role)
        until(lambda: may(requests, "admin", "create", "a"), "aggregation of the roles")
        until(lambda: create(requests, "admin", durationSeconds=3600).status == 422, "the admission policy is in force")
        yield requests


def bind(requests: Requests, person: str, namespace: str, role: str) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    body = {"metadata": {"name": f"{person}-{role}"[:60]}, "roleRef": reference, "subjects": [subject]}
    assert requests("POST", path, body).status == 201


def may(requests: Requests, person: str, verb: str, namespace: str, resource: str = "mldiagnosticsconnections") -> bool:
    attributes = {"verb": verb, "group": "diagon.gke.io", "resource": resource, "namespace": namespace}
    body = {"spec": {"user": person, "resourceAttributes": attributes}}
    answer = requests("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    return bool(answer.body["status"]["allowed"])


def capture(name: str = "probe", **trigger: Any) -> dict[str, Any]:
    pods = {} if "target" in trigger else {"podName": "worker-0"}
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name},
        "spec": {"triggerCapture": pods | trigger},
    }


def create(requests: Requests, person: str, namespace: str = "a", **trigger: Any) -> Answer:
    """Apply a capture as a user, as a dry run, and return the answer."""
    path = f"{GROUP}/namespaces/{namespace}/mldiagnosticsconnections?dryRun=All"
    return requests("POST", path, capture(**trigger), user=person)


@pytest.mark.parametrize(
    ("person", "namespace", "trigger"),
    [
        ("capturer", "a", {}),
        ("admin", "a", {}),
        ("capturer", "a", {"podNamespace": "a"}),
        ("capturer", "a", {"durationSeconds": 60}),
        ("capturer", "a", {"durationMilliseconds": 60_000}),
        ("capturer", "a", {"capturePort": 9012}),
        ("capturer", "a", {"capturePort": 9999}),
        ("capturer", "a", {"capturePort": 10014}),
        ("capturer", "a", {"storageLocation": "volume:///shared"}),
        ("capturer", "a", {"storageLocation": "volume:////shared/./x//y/"}),
        ("capturer", "a", {"storageLocation": "gs://team-a/profiles/x"}),
        ("capturer", "a", {"storageLocation": "/tmp/profiles"}),
        ("capturer", "a", {"storageLocation": "pod:///tmp/profiles/x"}),
        ("traveller", "a", {"podNamespace": "b"}),
        ("traveller", "a", {"podNamespace": "b", "storageLocation": "gs://team-a/profiles"}),
        ("capturer", "a", {"delivery": "Workload", "storageLocation": "gs://team-a/profiles"}),
        ("traveller", "b", {"storageLocation": "volume:///shared/x"}),
        ("capturer", "a", {"target": {"selector": {"matchLabels": {"app": "x"}}}, "durationSeconds": 60}),
    ],
    ids=str,
)
def test_allowed_captures_are_accepted(
    requests: Requests, person: str, namespace: str, trigger: dict[str, Any]
) -> None:
    answer = create(requests, person, namespace, **trigger)
    assert answer.status == 201, answer.message


@pytest.mark.parametrize(
    ("person", "namespace", "trigger", "words"),
    [
        ("capturer", "a", {"podNamespace": "b"}, ("podNamespace", "capturer", "pods/profile", "'b'")),
        ("traveller", "a", {"podNamespace": "c"}, ("podNamespace", "'c'", "add it to policy.crossNamespaces")),
        (
            "capturer",
            "a",
            {"durationSeconds": 61},
            ("durationSeconds", "61000 ms", "60 s", "raise policy.maxDurationSeconds"),
        ),
        ("capturer", "a", {"durationMilliseconds": 60_001}, ("durationMilliseconds", "60001 ms", "60 s")),
        ("capturer", "a", {"durationSeconds": 2_147_483_647}, ("durationSeconds", "2147483647000 ms")),
        ("capturer", "a", {"capturePort": 22}, ("capturePort", "22", "9012,9999-10014", "to policy.allowedPorts")),
        ("capturer", "a", {"capturePort": 9998}, ("capturePort", "9998")),
        ("capturer", "a", {"capturePort": 10015}, ("capturePort", "10015")),
        ("capturer", "a", {"capturePort": 0}, ("capturePort", "greater than or equal to 1")),
        ("capturer", "a", {"storageLocation": "volume:///"}, ("storageLocation", "volume:///shared/", "'a'")),
        ("capturer", "a", {"storageLocation": "volume:///sharedbutnot"}, ("storageLocation", "volume:///shared/")),
        ("capturer", "a", {"storageLocation": "gs://team-b/profiles"}, ("storageLocation", "gs://team-a/profiles/")),
        ("capturer", "a", {"storageLocation": "gs://team-a"}, ("policy.allowedStorage", "policy.strictTenancy=false")),
        ("capturer", "a", {"storageLocation": "gs:///team-a/profiles"}, ("storageLocation", "gs://<bucket>/<path>")),
        ("capturer", "a", {"storageLocation": "gs://team-a/profiles/../x"}, ("storageLocation", "'..'")),
        ("capturer", "a", {"storageLocation": "gs://team-a/profiles/%2e%2e/x"}, ("storageLocation", "letters, digits")),
        ("capturer", "a", {"storageLocation": "/tmp/profiles\n/../etc"}, ("storageLocation",)),
        ("capturer", "a", {"storageLocation": "/etc"}, ("storageLocation", "'/etc'", "/tmp/profiles/")),
        ("capturer", "a", {"storageLocation": "pod:///etc"}, ("storageLocation", "pod:///etc")),
        (
            "capturer",
            "a",
            {"storageLocation": "ftp://bucket/x"},
            ("storageLocation", "is not a location", "gs://<bucket>/<path>"),
        ),
        (
            "traveller",
            "b",
            {"storageLocation": "gs://team-a/profiles"},
            ("storageLocation", "'b'", "volume:///shared/"),
        ),
        ("traveller", "a", {"podNamespace": "b", "storageLocation": "/tmp/profiles"}, ("storageLocation", "'b'")),
        (
            "traveller",
            "a",
            {"podNamespace": "b", "delivery": "Workload", "storageLocation": "gs://team-a/profiles"},
            ("storageLocation", "'b'", "volume:///shared/"),
        ),
        ("viewer", "a", {}, ("cannot create",)),
        ("editor", "a", {}, ("cannot create",)),
        ("stranger", "a", {}, ("cannot create",)),
        ("capturer", "b", {}, ("cannot create",)),
    ],
    ids=str,
)
def test_forbidden_captures_are_refused_with_field_value_and_rule(
    requests: Requests, person: str, namespace: str, trigger: dict[str, Any], words: tuple[str, ...]
) -> None:
    answer = create(requests, person, namespace, **trigger)
    assert answer.status in (403, 422), answer
    assert [word for word in words if word not in answer.message] == [], answer.message


KNOWN = ("shared", "profiles", "tmp", "team-a")
TRICKS = ("sharedbutnot", "", ".", "..", "...", "%2e%2e", "a b", "\u00e9", "x\ny")
LOCATIONS = st.builds(
    lambda root, segments: root + "/".join(segments),
    st.sampled_from(
        ("gs://team-a/", "gs://team-a", "gs://", "gs:///", "volume:///", "volume://", "pod:///", "/", "s3://")
    ),
    st.lists(st.sampled_from(KNOWN + TRICKS), max_size=4),
)
TRIGGERS = st.fixed_dictionaries(
    {},
    optional={
        "podNamespace": st.sampled_from("abc"),
        "capturePort": st.sampled_from((9011, 9012, 9013, 9998, 9999, 10014, 10015)) | st.integers(1, 65535),
        "durationSeconds": st.sampled_from((1, 60, 61)),
        "storageLocation": LOCATIONS.filter(bool),
        "delivery": st.sampled_from(("Auto", "Operator", "Workload")),
    },
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trigger=TRIGGERS, namespace=st.sampled_from("ab"))
def test_property_admission_and_operator_agree(requests: Requests, trigger: dict[str, Any], namespace: str) -> None:
    """`traveller` may profile everywhere, so that only the policy decides."""
    answer = create(requests, "traveller", namespace, **trigger)
    document = json.dumps({key.removeprefix("policy."): value for key, value in POLICY.items()})
    body = capture(**trigger)
    body["metadata"] |= {"namespace": namespace, "uid": "1"}
    verdict = check(MLDiagnosticsConnection.model_validate(body), Policy.parse(document))
    # Admission does not check whether delivery and storage fit: the plan does.
    accepted = not isinstance(verdict, CaptureRefusal) or verdict.reason is RefusalReason.DELIVERY_IMPOSSIBLE
    assert (answer.status == 201) == accepted, (answer.message, verdict)


@pytest.mark.parametrize("objects", ["captures", "runs", "schedules"])
def test_the_policy_has_no_type_errors(requests: Requests, objects: str) -> None:
    path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{OPERATOR.name}-{objects}"

    def checked() -> dict[str, Any]:
        status: dict[str, Any] = requests("GET", path).body.get("status", {})
        return status

    until(lambda: "typeChecking" in checked(), "the policy's types are checked")
    assert checked()["typeChecking"].get("expressionWarnings", []) == []


def test_the_pods_of_an_admitted_capture_cannot_be_changed(requests: Requests) -> None:
    path = f"{GROUP}/namespaces/a/mldiagnosticsconnections"
    assert requests("POST", path, capture("fixed"), user="capturer").status == 201
    turned = requests.merge_patch(f"{path}/fixed", {"spec": {"triggerCapture": {"podNamespace": "b"}}}, user="capturer")
    assert turned.status == 422
    assert "immutable" in turned.message
    assert requests.merge_patch(f"{path}/fixed", {"spec": {"cancel": True}}, user="capturer").status == 200


@pytest.mark.parametrize("person", [*PEOPLE, ACCOUNT])
def test_only_the_operator_writes_status(requests: Requests, person: str) -> None:
    path = f"{GROUP}/namespaces/a/mldiagnosticsconnections"
    requests("POST", path, capture("state"), user="capturer")
    answer = requests.merge_patch(f"{path}/state/status", {"status": {"phase": "Running"}}, user=person)
    assert answer.status == (200 if person == ACCOUNT else 403), answer


@pytest.mark.parametrize("resource", ["mldiagnosticsconnections", "mldiagnosticsschedules"])
@pytest.mark.parametrize(
    ("person", "verbs"),
    [
        ("capturer", {"get", "list", "watch", "create", "patch", "update", "delete"}),
        ("admin", {"get", "list", "watch", "create", "patch", "update", "delete"}),
        ("editor", {"get", "list", "watch"}),
        ("viewer", {"get", "list", "watch"}),
        ("stranger", set()),
    ],
)
def test_users_have_these_verbs_only_in_their_namespace(
    requests: Requests, person: str, verbs: set[str], resource: str
) -> None:
    every = ("get", "list", "watch", "create", "patch", "update", "delete", "deletecollection")
    assert {verb for verb in every if may(requests, person, verb, "a", resource)} == verbs
    assert not any(may(requests, person, verb, "gke-mldiagnostics", resource) for verb in every)


CAPTURES = ("diagon.gke.io", "mldiagnosticsconnections")
# Permissions of the operator in every namespace: (group, resource) -> verbs.
EVERYWHERE = {
    CAPTURES: {"get", "list", "watch", "create", "delete"},
    ("diagon.gke.io", "mldiagnosticsconnections/status"): {"patch"},
    ("diagon.gke.io", "mldiagnosticsschedules"): {"list", "watch"},
    ("diagon.gke.io", "mldiagnosticsschedules/status"): {"patch"},
    ("authorization.k8s.io", "localsubjectaccessreviews"): {"create"},
    ("", "events"): {"create", "list"},
    ("", "nodes"): {"get"},
    ("", "pods"): {"get", "list", "watch"},
    ("", "namespaces"): {"get", "list", "watch"},
    ("diagon.gke.io", "mlruns"): {"get", "list", "watch", "create", "patch", "delete"},
    ("diagon.gke.io", "mlruns/status"): {"update"},
    ("kueue.x-k8s.io", "workloads"): {"list", "watch"},
}
EVERYWHERE |= {
    (kind.group, kind.plural): {"get", "list"} if kind.kind == "ReplicaSet" else {"get", "list", "watch"}
    for kind in WORKLOADS
    if kind.kind != "Pod" and not kind.groups
}
# (namespace, group, resource, name) -> verbs; "" means no namespace or any name.
BY_NAME = {
    ("", "apiextensions.k8s.io", "customresourcedefinitions", "mldiagnosticsconnections.diagon.gke.io"): {"get"},
    (NAMESPACE, "coordination.k8s.io", "leases", OPERATOR.name): {"get", "update"},
    (NAMESPACE, "coordination.k8s.io", "leases", ""): {"create"},
    ("", "authentication.k8s.io", "tokenreviews", ""): {"create"},
    ("kube-public", "", "configmaps", "mldiagnostics-control-plane"): {"get", "patch"},
    (NAMESPACE, "", "services", f"{OPERATOR.name}-api"): {"get"},
    (NAMESPACE, "", "secrets", f"{OPERATOR.name}-certificates"): {"get", "create", "patch"},
    (NAMESPACE, "discovery.k8s.io", "endpointslices", f"{OPERATOR.name}-api-ipv4"): {"get", "update", "create"},
    (NAMESPACE, "discovery.k8s.io", "endpointslices", f"{OPERATOR.name}-api-ipv6"): {"get", "update", "create"},
    (NAMESPACE, "discovery.k8s.io", "endpointslices", ""): {"create"},
}
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
NEVER = (
    ("", "secrets"),
    ("", "configmaps"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("", "pods/exec"),
    ("", "pods/portforward"),
    ("", "pods/log"),
    ("", "pods/ephemeralcontainers"),
    ("batch", "cronjobs"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("diagon.gke.io", "mldiagnosticsconnections/finalizers"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("coordination.k8s.io", "leases"),
)


def operator_may(
    requests: Requests, verb: str, group: str, resource: str, *, namespace: str = "", name: str = ""
) -> bool:
    plural, _, subresource = resource.partition("/")
    place = {"group": group, "resource": plural, "subresource": subresource, "namespace": namespace, "name": name}
    body = {"spec": {"user": ACCOUNT, "resourceAttributes": {"verb": verb, **place}}}
    answer = requests("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    return bool(answer.body["status"]["allowed"])


@pytest.mark.parametrize(("group", "resource"), [*EVERYWHERE, *NEVER], ids=str)
def test_the_operator_has_exactly_these_verbs(requests: Requests, group: str, resource: str) -> None:
    allowed = {verb for verb in VERBS if operator_may(requests, verb, group, resource, namespace="a")}
    assert allowed == EVERYWHERE.get((group, resource), set())


@pytest.mark.parametrize(("namespace", "group", "resource", "name"), BY_NAME, ids=str)
def test_some_permissions_of_the_operator_are_limited_by_name(
    requests: Requests, namespace: str, group: str, resource: str, name: str
) -> None:
    place = {"namespace": namespace, "name": name}
    allowed = {verb for verb in VERBS if operator_may(requests, verb, group, resource, **place)}
    everywhere = BY_NAME.get((namespace, group, resource, ""), set())
    assert allowed == BY_NAME[namespace, group, resource, name] | everywhere
    others = {"namespace": namespace, "name": "another"}
    assert {verb for verb in VERBS if operator_may(requests, verb, group, resource, **others)} == everywhere


def test_the_operators_roles_name_nothing_else() -> None:
    user_roles = {f"{OPERATOR.name}-{role}" for role in ("view", "capture", "runs")}
    roles = [item for item in rendered(OPERATOR) if item["kind"] in ("Role", "ClusterRole")]
    rules = [rule for role in roles if role["metadata"]["name"] not in user_roles for rule in role["rules"]]
    named = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    assert named == {*EVERYWHERE, *((group, resource) for _, group, resource, _ in BY_NAME)}
    assert all("*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]] for rule in rules)


def test_with_watched_namespaces_cluster_wide_rules_are_limited_by_name() -> None:
    objects = rendered(OPERATOR, {"watch.namespaces": ["a", "b"]})
    wanted = ("ClusterRole", OPERATOR.name)
    role = next(item for item in objects if (item["kind"], item["metadata"]["name"]) == wanted)
    assert [rule.get("resourceNames", rule["resources"]) for rule in role["rules"]] == [
        ["kube-system", "gke-managed-mldiagnostics"],
        ["nodes"],
        ["mldiagnosticsconnections.diagon.gke.io"],
        ["tokenreviews"],
    ]
    places = {item["metadata"]["namespace"] for item in objects if item["kind"] == "RoleBinding"}
    assert places == {"a", "b", NAMESPACE}
