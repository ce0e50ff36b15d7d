"""Objects and notes that the webhook's chart renders from its values."""

import base64
import json
import re
from pathlib import Path

import pytest
from cluster.progress import ClusterError
from hypothesis import assume, given
from hypothesis import strategies as st
from mldiagnostics.sink_urls import SCHEMES, parse_sinks
from mldiagnostics_api.manifests.registration import rules, webhooks
from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE
from mldiagnostics_api.workloads.variables import InjectionSettings
from mldiagnostics_kube.process.settings import declared
from mldiagnostics_webhook import config
from mldiagnostics_webhook.limits import MEMORY_LIMIT_BYTES
from mldiagnostics_webhook.replica import LINGER_S
from mldiagnostics_webhook.server import FINISH_S
from release.parts import NAMESPACE, WEBHOOK
from release.render import HOOK, Object, as_yaml, portable, rendered
from release.schemas import kubeconform
from support.cluster.charts import CERTIFICATE, EVERY_SWITCH, environment, notes, one, pod_template

CONFIGURATION = f"{WEBHOOK.name}-mutating-webhook-config"
SELF: Object = {}
CERT_MANAGER: Object = {"certificates.mode": "cert-manager"}
PROVIDED: Object = {**WEBHOOK.variants["provided"], "certificates.provided.caBundle": CERTIFICATE}
each_mode = pytest.mark.parametrize("values", [SELF, CERT_MANAGER, PROVIDED], ids=["self", "cert-manager", "provided"])


def configuration(objects: list[Object]) -> Object:
    return one(portable(objects), "MutatingWebhookConfiguration", CONFIGURATION)


def excluded(entry: Object) -> set[str]:
    (names,) = (
        expression["values"]
        for expression in entry["namespaceSelector"]["matchExpressions"]
        if expression["key"] == "kubernetes.io/metadata.name"
    )
    return set(names)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"failurePolicy": "Fail"}, "failurePolicy"),
        ({"sinks": "jsonl:"}, "sinks"),
        ({"sinks": ["jsonl"]}, "sinks"),
        ({"sinks": ["jsonl:,stdout:"]}, "sinks"),
        ({"sinks": ["jsonl:ftp://bucket"]}, "sinks"),
        ({"sinks": ["a b"]}, "sinks"),
        ({"storage": "ftp://bucket"}, "storage"),
        ({"storage": "gs://bucket/../other"}, "storage"),
        ({"storage": "relative"}, "storage"),
        ({"viewUrl": "view.example.com"}, "viewUrl"),
        ({"controlPlane.url": "ftp://x"}, "controlPlane"),
        ({"controlPlane.ca": "/etc/ca.pem"}, "controlPlane"),
        ({"certificates.mode": "certmanager"}, "mode"),
        ({"certificates.mode": "provided"}, "certificates.provided.secretName"),
        ({"certificates.provided.caBundle": "LS0tLS1"}, "caBundle"),
        ({"cluster.name": "projects/p/clusters/"}, "name"),
        ({"port": 443}, "port"),
        ({"port": 8081}, "port: 8081 is also httpPort"),
        ({"port": 9443, "httpPort": 9443}, "port: 9443 is also httpPort"),
        ({"hostNetwork": True}, "port: the kubelet uses 10250"),
        ({"hostNetwork": True, "port": 8443, "httpPort": 10250}, "httpPort: the kubelet uses 10250"),
        ({"dnsPolicy": "None"}, "dnsPolicy"),
        ({"configuration.annotations": {"a": True}}, "annotations"),
        ({"configuration.namespaceSelector.matchExpressions": [{"key": "a", "operator": "is"}]}, "operator"),
        ({"configuration.objectSelector.matchLabels": {"a": "b c"}}, "objectSelector"),
        ({"log.level": "LOUD"}, "level"),
    ],
    ids=str,
)
def test_invalid_values_are_rejected_by_name(values: Object, words: str) -> None:
    with pytest.raises(ClusterError, match=re.escape(words)):
        rendered(WEBHOOK, values)


SINK_OF_THE_CHART = json.loads((WEBHOOK.chart / "values.schema.json").read_text())["properties"]["sinks"]["items"][
    "pattern"
]


@given(st.from_regex(re.compile(SINK_OF_THE_CHART, re.ASCII), fullmatch=True))
def test_every_sink_that_the_chart_accepts_is_valid_for_the_sdk(url: str) -> None:
    host_port = re.search(r"\]|:([0-9]{5})", url)
    assume(host_port is None)  # the webhook refuses a malformed IPv6 address or a port above 65535 when it starts
    assume(url.isprintable())
    assert parse_sinks(url) == (url,)


def test_the_chart_accepts_a_url_of_every_sink() -> None:
    named = ("otlp://collector:4317", "otlp+http://c:4318/x", "otlp+https://c", "prometheus::9464", "tensorboard:/logs")
    urls = ("cloud-logging:", "jsonl:gs://bucket/x", "mlflow:", "stdout:", "wandb:", *named)
    assert {url.partition(":")[0] for url in urls} == set(SCHEMES)
    environ = environment(rendered(WEBHOOK, {"sinks": list(urls)}), WEBHOOK)
    assert config.load({"MLDIAG_SINKS": environ["MLDIAG_SINKS"]}).sinks == urls


@pytest.mark.parametrize("values", [SELF, CERT_MANAGER, EVERY_SWITCH[WEBHOOK.name]], ids=["self", "cm", "all"])
def test_the_webhook_reads_the_environment_that_the_chart_sets(values: Object) -> None:
    environ = environment(rendered(WEBHOOK, values), WEBHOOK)
    known = {setting.variable for setting in declared(config.WebhookConfig).values()}
    assert {name for name in environ if name.startswith("MLDIAG_")} <= known
    settings = config.load(environ | {"MLDIAG_CONTROL_PLANE_CA": ""})
    assert settings.injected("c") == InjectionSettings(
        cluster="c",
        storage=values.get("storage", ""),
        sinks=tuple(values.get("sinks", ())),
        view_url=values.get("viewUrl", ""),
        control_plane_url=values.get("controlPlane.url", ""),
        profiler_port=values.get("profilerPort", 9999),
    )
    assert environ["MLDIAG_CONTROL_PLANE_CA"] == values.get("controlPlane.ca", "")
    assert settings.cluster_name == values.get("cluster.name", "")
    assert (settings.certificate_folder is not None) == (values.get("certificates.mode", "self") != "self")


def test_the_secret_of_the_certificates_is_rendered_and_writable() -> None:
    objects = rendered(WEBHOOK)
    settings = config.load(environment(objects, WEBHOOK))
    secret = one(objects, "Secret", settings.certificate_secret)
    assert "data" not in secret, "an upgrade would overwrite the webhook's certificates"
    assert "stringData" not in secret
    (rule,) = one(objects, "Role", f"{WEBHOOK.name}-certificates")["rules"]
    assert (rule["resources"], rule["resourceNames"]) == (["secrets"], [settings.certificate_secret])
    published = one(objects, "ClusterRole", WEBHOOK.name)["rules"][-1]
    assert published["resourceNames"] == [settings.configuration_name] == [CONFIGURATION]
    assert one(objects, "Service", settings.service_name)["spec"]["ports"][0]["port"] == 443
    assert {entry["clientConfig"].get("caBundle") for entry in configuration(objects)["webhooks"]} == {None}


@pytest.mark.parametrize("values", [CERT_MANAGER, PROVIDED], ids=["cert-manager", "provided"])
def test_the_webhook_has_read_rules_only_when_it_does_not_manage_certificates(values: Object) -> None:
    objects = rendered(WEBHOOK, values)
    granted = [rule for item in portable(objects) if "Role" in item["kind"] for rule in item.get("rules", ())]
    published = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [PUBLICATION_NAME], "verbs": ["get"]}
    assert granted == [*rules(), published]
    assert "Secret" not in {item["kind"] for item in objects}


@each_mode
def test_the_mounted_secret_is_the_filled_one(values: Object) -> None:
    objects = rendered(WEBHOOK, values)
    volumes = pod_template(objects, WEBHOOK)["spec"].get("volumes", [])
    mounted = [volume["secret"]["secretName"] for volume in volumes]
    filled = [
        item["spec"]["secretName"]
        for item in objects
        if (item["kind"], item["metadata"]["name"]) == ("Certificate", WEBHOOK.name)
    ]
    provided = values.get("certificates.provided.secretName")
    assert mounted == filled + ([provided] if provided else [])


def test_cert_manager_signs_for_the_service_and_injects_its_ca_into_the_configuration() -> None:
    objects = rendered(WEBHOOK, CERT_MANAGER)
    leaf = one(objects, "Certificate", WEBHOOK.name)
    service = configuration(objects)["webhooks"][0]["clientConfig"]["service"]
    assert leaf["spec"]["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
    annotations = configuration(objects)["metadata"]["annotations"]
    assert annotations == {"cert-manager.io/inject-ca-from": f"gke-mldiagnostics/{leaf['metadata']['name']}"}
    authority = one(objects, "Certificate", f"{WEBHOOK.name}-ca")
    issuer = one(objects, "Issuer", leaf["spec"]["issuerRef"]["name"])
    assert issuer["spec"]["ca"]["secretName"] == authority["spec"]["secretName"]
    assert authority["spec"]["privateKey"]["rotationPolicy"] == "Never"


def test_provided_authorities_are_trusted_by_every_entry() -> None:
    bundles = {entry["clientConfig"]["caBundle"] for entry in configuration(rendered(WEBHOOK, PROVIDED))["webhooks"]}
    assert [base64.b64decode(bundle).decode() for bundle in bundles] == [CERTIFICATE]


def test_the_entries_are_the_generated_ones_with_the_service_and_the_own_namespace() -> None:
    entries = configuration(rendered(WEBHOOK, namespace="ml-system"))["webhooks"]
    for entry, generated in zip(entries, webhooks(), strict=True):
        service = {"name": WEBHOOK.name, "namespace": "ml-system", "port": 443}
        assert entry["clientConfig"] == {"service": generated["clientConfig"]["service"] | service}
        assert excluded(entry) == excluded(generated) | {"ml-system"}
        changed = {"clientConfig", "namespaceSelector"}
        assert {key: value for key, value in entry.items() if key not in changed} == {
            key: value for key, value in generated.items() if key not in changed
        }
        assert entry["failurePolicy"] == "Ignore"


def test_the_namespace_default_is_never_excluded() -> None:
    for entry in configuration(rendered(WEBHOOK, namespace="default"))["webhooks"]:
        assert "default" not in excluded(entry)


MORE: Object = {
    "configuration.namespaceSelector": {
        "matchLabels": {"tenant": "ml"},
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["ml", "research"]}],
    },
    "configuration.objectSelector.matchExpressions": [{"key": "queue", "operator": "Exists"}],
}


def test_selectors_of_the_user_are_added_to_those_of_the_chart() -> None:
    entries, plain = (configuration(rendered(WEBHOOK, values))["webhooks"] for values in (MORE, {}))
    for entry, without in zip(entries, plain, strict=True):
        assert entry["namespaceSelector"] == {
            "matchLabels": {"tenant": "ml"},
            "matchExpressions": [
                *without["namespaceSelector"]["matchExpressions"],
                *MORE["configuration.namespaceSelector"]["matchExpressions"],
            ],
        }
        pods = "objectSelector" in without  # it is about pods, and not about schedules
        assert {key for key in entry if entry[key] != without[key]} == {"namespaceSelector", *["objectSelector"][:pods]}
        if pods:
            assert entry["objectSelector"]["matchExpressions"] == [
                *without["objectSelector"]["matchExpressions"],
                *MORE["configuration.objectSelector.matchExpressions"],
            ]


def test_annotations_of_the_user_are_merged_with_those_of_the_mode() -> None:
    aks = {"admissions.enforcer/disabled": "true"}
    values = {"configuration.annotations": aks | {"cert-manager.io/inject-ca-from": "else/where"}}
    by_cert_manager = configuration(rendered(WEBHOOK, CERT_MANAGER | values))["metadata"]["annotations"]
    assert by_cert_manager == aks | {"cert-manager.io/inject-ca-from": f"gke-mldiagnostics/{WEBHOOK.name}"}
    own = configuration(rendered(WEBHOOK, PROVIDED | values))["metadata"]["annotations"]
    assert own == values["configuration.annotations"]


@pytest.mark.parametrize(
    ("values", "policy"),
    [
        ({}, None),
        ({"dnsPolicy": "Default"}, "Default"),
        ({"hostNetwork": True, "port": 8443}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "port": 8443, "dnsPolicy": "Default"}, "Default"),
    ],
    ids=str,
)
def test_cluster_names_are_resolved_on_the_host_network_too(values: Object, policy: str | None) -> None:
    objects = rendered(WEBHOOK, values)
    pod = pod_template(objects, WEBHOOK)["spec"]
    assert pod.get("dnsPolicy") == policy
    assert pod.get("hostNetwork", False) is values.get("hostNetwork", False)
    assert kubeconform(as_yaml(objects)) == ""


def test_on_the_host_network_a_pod_stops_before_its_replacement_starts() -> None:
    deployment = one(rendered(WEBHOOK, {"hostNetwork": True, "port": 8443}), "Deployment", WEBHOOK.name)
    assert deployment["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }


def test_probes_and_metrics_use_the_http_port() -> None:
    objects = rendered(WEBHOOK, {"httpPort": 9081})
    assert environment(objects, WEBHOOK)["MLDIAG_HTTP_PORT"] == "9081"
    (container,) = pod_template(objects, WEBHOOK)["spec"]["containers"]
    assert {"name": "http", "containerPort": 9081} in container["ports"]
    probes = [container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")]
    assert probes == ["http"] * 3
    (port,) = one(objects, "Service", f"{WEBHOOK.name}-metrics")["spec"]["ports"]
    assert port["targetPort"] == "http"


@each_mode
def test_only_tests_are_hooks(values: Object) -> None:
    """Argo CD and `helm uninstall --no-hooks` skip hooks: a required object must not be one."""
    hooks = {item["metadata"].get("annotations", {}).get(HOOK) for item in rendered(WEBHOOK, values)}
    assert hooks == {None, "test"}


def test_the_configuration_is_named_after_the_release_and_everything_else_after_its_full_name() -> None:
    objects = rendered(WEBHOOK, {"fullnameOverride": "mld"})
    configuration(objects)
    rest = [item["metadata"]["name"] for item in objects if item["kind"] != "MutatingWebhookConfiguration"]
    assert [name for name in rest if not name.startswith("mld")] == []


def test_the_grace_period_covers_the_shutdown() -> None:
    pod = pod_template(rendered(WEBHOOK), WEBHOOK)["spec"]
    (container,) = pod["containers"]
    pause_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > pause_s + LINGER_S + FINISH_S


def test_three_replicas_of_which_one_may_stop_at_a_time() -> None:
    objects = rendered(WEBHOOK)
    deployment = one(objects, "Deployment", WEBHOOK.name)
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    budget = one(objects, "PodDisruptionBudget", WEBHOOK.name)["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == deployment["spec"]["selector"]
    spread = pod_template(objects, WEBHOOK)["spec"]["topologySpreadConstraints"]
    assert {each["topologyKey"] for each in spread} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}


def test_the_api_server_reaches_the_port_that_is_served() -> None:
    objects = rendered(WEBHOOK, {"port": 9443})
    assert environment(objects, WEBHOOK)["MLDIAG_PORT"] == "9443"
    (container,) = pod_template(objects, WEBHOOK)["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["reviews"] == 9443
    (port,) = one(objects, "Service", WEBHOOK.name)["spec"]["ports"]
    assert port["targetPort"] == "reviews"
    ingress = one(objects, "NetworkPolicy", WEBHOOK.name)["spec"]["ingress"]
    assert [each["port"] for rule in ingress for each in rule["ports"]] == ["reviews", "http"]
    assert not any("from" in rule for rule in ingress)


def test_the_port_for_reviews_can_be_closed_to_all_but_the_api_servers() -> None:
    peers = [{"ipBlock": {"cidr": "10.0.0.2/32"}}]
    objects = rendered(WEBHOOK, {"networkPolicy.reviewsFrom": peers})
    reviews, http = one(objects, "NetworkPolicy", WEBHOOK.name)["spec"]["ingress"]
    assert reviews["from"] == peers
    assert "from" not in http


def test_the_memory_limit_is_the_one_that_the_bounds_need() -> None:
    (container,) = pod_template(rendered(WEBHOOK), WEBHOOK)["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == f"{MEMORY_LIMIT_BYTES // 2**20}Mi"


def test_the_webhook_may_read_the_published_control_plane_unless_a_value_names_one() -> None:
    role = one(rendered(WEBHOOK), "Role", f"{WEBHOOK.name}-publication")
    assert role["metadata"]["namespace"] == PUBLICATION_NAMESPACE
    assert [rule["resourceNames"] for rule in role["rules"]] == [[PUBLICATION_NAME]]
    named = rendered(WEBHOOK, {"controlPlane.url": "https://control:8443"})
    assert {item["metadata"].get("namespace", NAMESPACE) for item in named} == {NAMESPACE, "default"}


@pytest.mark.parametrize(
    ("values", "namespace", "words"),
    [
        ({}, "ml", "helm test"),
        (CERT_MANAGER, "ml", "kubectl get certificate"),
        (WEBHOOK.variants["provided"], "ml", "caBundle is empty"),
        (PROVIDED, "ml", f"{WEBHOOK.name}.ml.svc"),
        ({"rbac.create": False}, "ml", "rbac.create is false"),
        ({}, "default", "never excluded"),
    ],
)
def test_the_notes_name_the_next_steps_for_these_values(
    values: Object, namespace: str, words: str, tmp_path: Path
) -> None:
    assert words in notes(WEBHOOK, tmp_path, values, namespace=namespace)


def test_the_notes_of_an_installation_without_values_have_no_warning(tmp_path: Path) -> None:
    text = notes(WEBHOOK, tmp_path, {})
    assert not re.search(r"rbac\.create|caBundle|certificate is|never excluded|controlPlane", text)
