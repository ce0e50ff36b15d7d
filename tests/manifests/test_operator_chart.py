"""Objects and notes that the operator's chart renders from its values."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError
from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics.capture.budget import memory_limit
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.manifests.definition import DEFINITIONS
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE
from mldiagnostics_api.v1alpha1 import read_connection
from mldiagnostics_kube.process.settings import declared
from mldiagnostics_operator import config
from release.parts import OPERATOR
from release.render import Object, as_yaml, rendered
from release.schemas import kubeconform
from support.cluster.charts import EVERY_SWITCH, environment, notes, one, pod_template


@pytest.mark.parametrize("sample", sorted((REPOSITORY / "examples").rglob("*.yaml")), ids=lambda path: path.name)
def test_every_example_matches_the_crd(sample: Path) -> None:
    ours = [item for item in yaml.safe_load_all(sample.read_text()) if item["apiVersion"].startswith("diagon.gke.io/")]
    assert kubeconform(as_yaml(ours), (REPOSITORY / "crds").glob("*.yaml")) == ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"polcy": {}}, "polcy"),
        ({"policy.maxDuration": 3}, "maxDuration"),
        ({"policy.maxDurationSeconds": 0}, "maxDurationSeconds"),
        ({"policy.defaultStorage": "ftp://bucket"}, "defaultStorage"),
        ({"policy.defaultStorage": "gs://bucket/../other"}, "defaultStorage"),
        ({"policy.allowedStorage": {"ml": ["/tmp/../etc"]}}, "allowedStorage"),
        ({"policy.allowedStorage": {"ML": ["/tmp"]}}, "allowedStorage"),
        ({"policy.defaultStorage": "gs://Bucket"}, "defaultStorage"),
        ({"policy.allowedStorage": {"ml": ["gs://b_/x"]}}, "allowedStorage"),
        ({"policy.allowedPorts": "9999-"}, "allowedPorts"),
        ({"policy.allowedPorts": "9999,10014-10000"}, "allowedPorts"),
        ({"policy.allowedPorts": 65536}, "allowedPorts"),
        ({"log.level": "LOUD"}, "level"),
        ({"replicas": "two"}, "replicas"),
        ({"volume.claim.size": "100 Gi"}, "size"),
        ({"volume.temporarySize": "20GiB"}, "temporarySize"),
        ({"volume.claim.accessModes": ["ReadWriteOnce", "ReadWriteOnce"]}, "accessModes"),
        ({"policy.crossNamespaces": ["ml", "ml"]}, "crossNamespaces"),
        ({"networkPolicy.profilerPorts.namespaces": ["ml", "ml"]}, "namespaces"),
        (
            {"controlPlane.port": 8081},
            "controlPlane.port, controlPlane.peer.port, controlPlane.files.port: two of the ports 8081, 8081 are equal",
        ),
        ({"controlPlane.peer": {"enabled": True, "port": 8443}}, "two of the ports 8081, 8443, 8443 are equal"),
        ({"controlPlane.certificates.mode": "provided"}, "controlPlane.certificates.provided.secretName: is empty"),
        ({"controlPlane.port": 443}, "port"),
    ],
    ids=str,
)
def test_invalid_values_are_rejected_by_name(values: Object, words: str) -> None:
    with pytest.raises(ClusterError, match=re.escape(words)):
        rendered(OPERATOR, values)


@pytest.mark.parametrize("values", [{}, EVERY_SWITCH[OPERATOR.name]], ids=["default", "every switch"])
def test_the_operator_reads_the_environment_that_the_chart_sets(values: Object, tmp_path: Path) -> None:
    objects = rendered(OPERATOR, values)
    files = one(objects, "ConfigMap", f"{OPERATOR.name}-policy")["data"]
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    mounted = environment(objects, OPERATOR)
    environ = {name: value.replace("/etc/mldiagnostics/", f"{tmp_path}/") for name, value in mounted.items()}
    known = {setting.variable for setting in declared(config.OperatorConfig).values()}
    assert {name for name in environ if name.startswith("MLDIAG_")} <= known
    settings = config.load(environ | {"POD_IP": "10.0.0.1"})
    assert settings.policy == Policy.parse(files["policy.json"])
    assert (settings.diagnosis_job is not None) == ("diagnosis-job.json" in files)
    assert settings.watch_namespaces == tuple(values.get("watch.namespaces", ()))
    service = one(objects, "Service", settings.control_plane_service)["spec"]
    assert "selector" not in service
    ports = {port["name"]: port["port"] for port in service["ports"]}
    assert ports == {"https": settings.control_plane_port} | (
        {"http-peer": settings.peer_port, "https-results": settings.results_port} if settings.peer_port else {}
    )
    assert settings.control_plane
    assert settings.control_plane_publish
    grace_s = pod_template(objects, OPERATOR)["spec"]["terminationGracePeriodSeconds"]
    assert settings.shutdown_grace_s < grace_s


def test_without_values_the_operator_has_its_own_defaults() -> None:
    document = one(rendered(OPERATOR), "ConfigMap", f"{OPERATOR.name}-policy")["data"]["policy.json"]
    assert Policy.parse(document) == Policy()


ROLES = ("Role", "RoleBinding")
CERTIFICATE_MODES = {
    "self": {},
    "cert-manager": {"controlPlane.certificates.mode": "cert-manager"},
    "provided": {
        "controlPlane.certificates.mode": "provided",
        "controlPlane.certificates.provided.secretName": "mine",
    },
}


@pytest.mark.parametrize("mode", CERTIFICATE_MODES)
def test_the_operator_finds_the_certificate_of_the_control_plane(mode: str) -> None:
    objects = rendered(OPERATOR, CERTIFICATE_MODES[mode])
    settings = config.load(environment(objects, OPERATOR) | {"POD_IP": "10.0.0.1", "MLDIAG_POLICY_FILE": ""})
    role = one(objects, "Role", f"{OPERATOR.name}-control-plane")
    secrets = [rule["resourceNames"] for rule in role["rules"] if rule["resources"] == ["secrets"]]
    mounted = {
        volume["secret"]["secretName"]
        for volume in pod_template(objects, OPERATOR)["spec"]["volumes"]
        if "secret" in volume
    }
    if mode == "self":
        assert one(objects, "Secret", settings.control_plane_secret)
        assert secrets == [[settings.control_plane_secret]]
        assert (settings.control_plane_folder, mounted) == (None, set())
    else:
        (container,) = pod_template(objects, OPERATOR)["spec"]["containers"]
        assert str(settings.control_plane_folder) in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert secrets == []
        issued = {item["spec"]["secretName"] for item in objects if item["kind"] == "Certificate"}
        assert mounted == ({"mine"} if mode == "provided" else mounted & issued)
        assert mounted


@pytest.mark.parametrize(
    ("values", "published"),
    [
        ({}, True),
        ({"controlPlane.publish": False}, False),
        ({"watch.namespaces": ["ml"]}, False),
        ({"watch.namespaces": ["ml"], "controlPlane.publish": True}, True),
        ({"controlPlane.enabled": False, "controlPlane.publish": True}, False),
    ],
    ids=str,
)
def test_one_release_in_a_cluster_publishes(values: Object, published: bool, tmp_path: Path) -> None:
    objects = rendered(OPERATOR, values)
    in_public = {(item["kind"], item["metadata"]["name"]) for item in objects if is_public(item)}
    wanted = {("ConfigMap", PUBLICATION_NAME)} | {(kind, f"{OPERATOR.name}-publication") for kind in ROLES}
    assert in_public == (wanted if published else set())
    assert (environment(objects, OPERATOR).get("MLDIAG_CONTROL_PLANE_PUBLISH") == "true") is published
    text = notes(OPERATOR, tmp_path, values)
    enabled = values.get("controlPlane.enabled", True)
    assert ("gives this address to new pods" in text) is published
    assert ("controlPlane.publish is false" in text) is (enabled and not published)


def is_public(item: Object) -> bool:
    return bool(item["metadata"].get("namespace") == PUBLICATION_NAMESPACE)


def test_without_a_control_plane_nothing_of_it_is_rendered() -> None:
    objects = rendered(OPERATOR, {"controlPlane.enabled": False, "controlPlane.peer.enabled": True})
    text = as_yaml(objects)
    assert not re.search("CONTROL_PLANE|control-plane|PEER|tokenreviews|endpointslices", text)
    assert [item["metadata"]["name"] for item in objects if item["kind"] == "Service"] == [f"{OPERATOR.name}-metrics"]
    (rule,) = one(objects, "NetworkPolicy", OPERATOR.name)["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == ["http"]


def test_a_changed_policy_replaces_the_pods() -> None:
    def checksum(values: Object) -> str:
        template = pod_template(rendered(OPERATOR, values), OPERATOR)
        return str(template["metadata"]["annotations"]["checksum/policy"])

    assert checksum({"policy.maxDurationSeconds": 30}) != checksum({})
    assert checksum({"replicas": 3}) == checksum({})


@settings(max_examples=5)  # each starts helm
@given(st.integers(2**20, 2**31 - 1))
def test_property_the_memory_limit_is_that_of_the_capture_engine(trace_bytes: int) -> None:
    template = pod_template(rendered(OPERATOR, {"policy.maxTraceBytes": trace_bytes}), OPERATOR)
    limit = template["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert int(limit.removesuffix("Mi")) == memory_limit(trace_bytes) // 2**20


def test_crds_are_kept_on_uninstall_unless_disabled() -> None:
    def policies(values: Object) -> list[str | None]:
        definitions = (item for item in rendered(OPERATOR, values) if item["kind"] == "CustomResourceDefinition")
        annotations = (definition["metadata"].get("annotations", {}) for definition in definitions)
        return [each.get("helm.sh/resource-policy") for each in annotations]

    assert policies({}) == ["keep"] * len(DEFINITIONS)
    assert policies({"crds.keep": False}) == [None] * len(DEFINITIONS)
    assert policies({"crds.enabled": False}) == []


@pytest.mark.parametrize("size", ["1", "100Gi", "1.5Ti", "500M", "1e12", "128k"])
def test_sizes_are_quantities(size: str) -> None:
    values = {"volume.claim.enabled": True, "volume.claim.size": size}
    claim = one(rendered(OPERATOR, values), "PersistentVolumeClaim", OPERATOR.name)
    assert claim["spec"]["resources"]["requests"]["storage"] == size


@pytest.mark.parametrize("name", ["42", "true", "fast"])
def test_a_storage_class_may_have_any_name(name: str) -> None:
    values = {"volume.claim.enabled": True, "volume.claim.storageClassName": name}
    claim = one(rendered(OPERATOR, values), "PersistentVolumeClaim", OPERATOR.name)
    assert claim["spec"]["storageClassName"] == name


ONE_NODE = {"volume.claim.enabled": True, "volume.claim.accessModes": ["ReadWriteOnce"]}


@pytest.mark.parametrize(
    ("values", "strategy"),
    [
        ({}, None),
        ({"volume.claim.enabled": True}, None),
        (ONE_NODE, {"type": "Recreate"}),
        (ONE_NODE | {"volume.claim.accessModes": ["ReadWriteOncePod"], "replicas": 1}, {"type": "Recreate"}),
        (ONE_NODE | {"volume.claim.accessModes": ["ReadWriteOnce", "ReadWriteMany"]}, None),
        (ONE_NODE | {"volume.claim.enabled": False}, None),
        (ONE_NODE | {"strategy": {"type": "RollingUpdate"}}, {"type": "RollingUpdate"}),
        ({"volume.existingClaim": "mine", "replicas": 1}, {"type": "Recreate"}),
        (ONE_NODE | {"volume.existingClaim": "mine"}, None),
    ],
    ids=str,
)
def test_old_pods_stop_first_if_one_node_mounts_the_claim(values: Object, strategy: Object | None) -> None:
    """Otherwise the new pod waits for the volume, and the old pod for the new one."""
    deployment = one(rendered(OPERATOR, values), "Deployment", OPERATOR.name)
    assert deployment["spec"].get("strategy") == strategy


@pytest.mark.parametrize(
    ("values", "replicas"),
    [
        ({}, 1),
        (ONE_NODE, 1),
        ({"volume.claim.enabled": True}, 2),
        ({"volume.existingClaim": "mine"}, 2),
        ({"policy.defaultStorage": "gs://bucket/runs"}, 2),
        ({"policy.defaultStorage": ""}, 2),
        ({"volume.claim.enabled": True, "replicas": 0}, 0),
        ({"replicas": 3}, 3),
    ],
    ids=str,
)
def test_by_default_all_replicas_read_the_same_files(values: Object, replicas: int) -> None:
    assert one(rendered(OPERATOR, values), "Deployment", OPERATOR.name)["spec"]["replicas"] == replicas


@pytest.mark.parametrize(
    ("values", "named"),
    [({"replicas": 2}, True), ({}, False), ({"replicas": 2, "volume.claim.enabled": True}, False)],
    ids=str,
)
def test_replicas_with_a_volume_each_are_named_in_the_notes(values: Object, named: bool, tmp_path: Path) -> None:
    assert ("Each replica has a temporary volume of its own" in notes(OPERATOR, tmp_path, values)) is named


def spans(ports: list[Object], protocol: str) -> set[int]:
    ours = (port for port in ports if port["protocol"] == protocol)
    return {number for port in ours for number in range(port["port"], (port.get("endPort") or port["port"]) + 1)}


@pytest.mark.parametrize("allowed", ["9012,9999-10014", "1-65535", "65535", "10-20,15-30,1", 9999], ids=str)
def test_profiler_ports_are_open_to_the_operator_only_and_other_ports_to_everybody(allowed: str | int) -> None:
    values = {"policy.allowedPorts": allowed, "networkPolicy.profilerPorts.namespaces": ["ml"]}
    policy = one(rendered(OPERATOR, values), "NetworkPolicy", f"{OPERATOR.name}-profiler-ports")
    open_to_all, operator = policy["spec"]["ingress"]
    profiler_ports = spans(operator["ports"], "TCP")
    ports = Policy.parse(json.dumps({"allowedPorts": allowed})).allowed_ports
    assert profiler_ports == {port for port in range(1, 65536) if port in ports}
    assert spans(open_to_all["ports"], "TCP") == set(range(1, 65536)) - profiler_ports
    assert "from" not in open_to_all
    assert all("endPort" not in port for port in operator["ports"]) == (len(profiler_ports) < 33)
    assert operator["from"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gke-mldiagnostics"}},
            "podSelector": one(rendered(OPERATOR), "Deployment", OPERATOR.name)["spec"]["selector"],
        }
    ]


@pytest.mark.parametrize(
    ("chosen", "selector"),
    [
        ({}, {"matchExpressions": [{"key": RUN_LABEL, "operator": "Exists"}]}),
        ({"matchLabels": {"app": "trainer"}}, {"matchLabels": {"app": "trainer"}}),
        ({"matchExpressions": []}, {"matchExpressions": []}),
    ],
    ids=str,
)
def test_profiler_ports_are_closed_on_pods_of_runs_unless_others_are_selected(chosen: Object, selector: Object) -> None:
    values = {"networkPolicy.profilerPorts": {"namespaces": ["ml"], "podSelector": chosen}}
    policy = one(rendered(OPERATOR, values), "NetworkPolicy", f"{OPERATOR.name}-profiler-ports")
    assert policy["spec"]["podSelector"] == selector


def test_the_notes_name_the_limits_of_closed_ports(tmp_path: Path) -> None:
    text = notes(OPERATOR, tmp_path, {"networkPolicy.profilerPorts.namespaces": ["ml", "research"]})
    assert f"label {RUN_LABEL} in ml, research" in text
    assert "endPort" in text


def test_the_capture_in_the_notes_can_be_pasted(tmp_path: Path) -> None:
    script = re.findall(r"^kubectl .*?<<END$.*?^END$", notes(OPERATOR, tmp_path, {}), re.MULTILINE | re.DOTALL)
    typed = f"kubectl() {{ cat; }}; {script[0]}".replace("NAMESPACE", "ml").replace("NAME", "trainer")
    piped = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True)
    capture = yaml.safe_load(piped.stdout)
    read_connection(capture | {"metadata": {**capture["metadata"], "uid": "u"}})


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ({}, True),
        ({"volume.claim.enabled": True}, False),
        ({"policy.defaultStorage": "gs://bucket/profiles"}, False),
        ({"policy.defaultStorage": ""}, False),
    ],
)
def test_the_notes_warn_if_profiles_go_to_a_temporary_volume(values: Object, warned: bool, tmp_path: Path) -> None:
    assert ("are deleted with the operator's pod" in notes(OPERATOR, tmp_path, values)) is warned


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "any bucket that the operator's cloud identity can write.\n"),
        ({"policy.allowedStorage": {"ml": ["gs://of-ml"]}}, "can write, also in ml.\n"),
        ({"policy.strictTenancy": True}, ""),
    ],
    ids=str,
)
def test_the_notes_name_strict_tenancy_if_every_bucket_is_allowed(values: Object, words: str, tmp_path: Path) -> None:
    text = notes(OPERATOR, tmp_path, values)
    assert words in text
    assert ("policy.strictTenancy=true" in text) is bool(words)


def test_the_notes_name_the_missing_roles(tmp_path: Path) -> None:
    assert "rbac.create is false" in notes(OPERATOR, tmp_path / "without", {"rbac.create": False})
    assert "rbac.create" not in notes(OPERATOR, tmp_path / "with", {})


def test_the_notes_of_a_disabled_chart_are_one_line(tmp_path: Path) -> None:
    assert notes(OPERATOR, tmp_path, {"enabled": False}).strip() == (
        f"{OPERATOR.name}: enabled is false; the release has no objects."
    )


def test_xprof_beside_the_view_has_no_token_and_no_keys() -> None:
    view = {"enabled": True, "xprof": {"enabled": True}, "bucketSecretName": "keys", "mountVolume": True}
    objects = rendered(OPERATOR, {"view": view, "volume.claim.enabled": True})
    [deployment] = [
        each for each in objects if each["kind"] == "Deployment" and each["metadata"]["name"].endswith("-web-view")
    ]
    pod = deployment["spec"]["template"]["spec"]
    view_container, xprof = pod["containers"]
    mounts = [{mount["name"]: mount["mountPath"] for mount in each["volumeMounts"]} for each in pod["containers"]]
    assert pod["automountServiceAccountToken"] is False
    assert mounts[1].keys() == {"sessions", "xprof-tmp"}
    assert mounts[0]["sessions"] == mounts[1]["sessions"]
    assert mounts[0]["account"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert [each["name"] for each in xprof["env"]] == ["HOME"]
    assert "envFrom" in view_container
    assert "envFrom" not in xprof
    assert xprof["image"].partition(":")[0].endswith("/mldiagnostics-xprof")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"proxy": {"userHeader": "X-User", "secretName": "proxy"}}, "view.xprof.enabled: needs view.url"),
        ({"port": 8791}, "view.port: 8791 and 8792 are ports of XProf"),
        ({"xprof": {"enabled": True, "cacheGiB": 0}}, "cacheGiB"),
    ],
)
def test_xprof_beside_the_view_is_refused_with_the_remedy(values: Object, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        rendered(OPERATOR, {"view": {"enabled": True, "xprof": {"enabled": True}, **values}})


@pytest.mark.parametrize("captures", [False, True])
@pytest.mark.parametrize("proxy", [{}, {"userHeader": "X-User", "secretName": "proxy"}])
def test_the_view_may_make_captures_only_by_value_and_behind_a_proxy(captures: bool, proxy: Object) -> None:
    for namespaces, kind in (([], "ClusterRole"), (["ml"], "Role")):
        view = {"enabled": True, "captures": captures, "proxy": proxy}
        objects = rendered(OPERATOR, {"view": view, "watch.namespaces": namespaces})
        rules = one(objects, kind, f"{OPERATOR.name}-web-view")["rules"]
        verbs = {verb for rule in rules if "mldiagnosticsconnections" in rule["resources"] for verb in rule["verbs"]}
        assert verbs == ({"get", "create", "patch"} if captures and proxy else set())
        [deployment] = [
            each for each in objects if each["kind"] == "Deployment" and each["metadata"]["name"].endswith("-web-view")
        ]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert {"name": "MLDIAG_VIEW_CAPTURES", "value": str(captures).lower()} in container["env"]
