"""Rendered charts for tests: single objects, the notes, and values that enable all options."""

import shutil
import textwrap
from pathlib import Path
from typing import Any

import yaml
from release.parts import OPERATOR, PARTS, WEBHOOK, Part
from release.render import Object, helm, rendered
from release.version import current

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
_OF_BOTH: Object = {
    "serviceAccount.annotations": {"iam.gke.io/gcp-service-account": "a@b.iam.gserviceaccount.com"},
    "imagePullSecrets": [{"name": "pull"}],
    "priorityClassName": "high",
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "extraEnv": [{"name": "STORAGE_EMULATOR_HOST", "value": "http://gcs:4443"}],
    "cluster.name": "projects/p/locations/l/clusters/c",
    "log.level": "DEBUG",
    "commonLabels": {"team": "ml"},
    "metrics.dashboards.enabled": True,
    "podSecurityContext.runAsUser": 1000650000,
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}, "data": {"a": "{{ b }}"}}],
}
EVERY_SWITCH: dict[str, Object] = {
    OPERATOR.name: _OF_BOTH
    | {
        "watch.namespaces": ["ml", "research"],
        "networkPolicy.profilerPorts.namespaces": ["ml"],
        "volume.claim.enabled": True,
        "volume.claim.storageClassName": "fast",
        "policy.allowedStorage": {"*": [], "ml": ["gs://", "volume:///ml/", "/tmp/profiles", "pod:///data"]},
        "policy.ttlSecondsAfterFinished": 3600,
        "policy.crossNamespaces": ["*"],
        "volume.claim.accessModes": ["ReadWriteOnce"],
        "controlPlane.port": 9443,
        "controlPlane.publish": True,
        "controlPlane.certificates.mode": "provided",
        "controlPlane.certificates.provided.secretName": "mine",
        "controlPlane.peer.enabled": True,
        "controlPlane.peer.port": 9080,
        "controlPlane.files": {"enabled": True, "port": 9444},
        "view": {
            "enabled": True,
            "url": "https://view.example.com/runs/",
            "port": 9425,
            "mountVolume": True,
            "captures": True,
            "xprof": {"enabled": True, "cacheGiB": 2},
            "proxy": {
                "userHeader": "X-Forwarded-User",
                "groupsHeader": "X-Forwarded-Groups",
                "secretHeader": "X-Secret",
                "secretName": "proxy",
                "from": [{"podSelector": {"matchLabels": {"app": "oauth2-proxy"}}}],
            },
            "serviceAccount": {"annotations": {"iam.gke.io/gcp-service-account": "v@b.iam.gserviceaccount.com"}},
        },
    },
    WEBHOOK.name: _OF_BOTH
    | {
        "storage": "gs://bucket/runs",
        "sinks": ["jsonl:", "otlp://collector:4317"],
        "viewUrl": "https://view.example.com/",
        "profilerPort": 9012,
        "controlPlane.url": "https://control.ml.svc:8443",
        "controlPlane.ca": CERTIFICATE,
        "certificates.mode": "provided",
        "certificates.provided.secretName": "mine",
        "certificates.provided.caBundle": CERTIFICATE,
        "port": 8443,
        "httpPort": 9081,
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "configuration.annotations": {"admissions.enforcer/disabled": "true"},
        "configuration.namespaceSelector.matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}],
        "configuration.objectSelector.matchLabels": {"tier": "training"},
        "replicas": 5,
        "networkPolicy.reviewsFrom": [{"ipBlock": {"cidr": "10.0.0.2/32"}}],
    },
}
"""Values of each chart, by name, that render all of its objects."""


def one(objects: list[Object], kind: str, name: str) -> Object:
    """Return the object of that kind and name."""
    (body,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == (kind, name))
    return body


def pod_template(objects: list[Object], part: Part) -> Object:
    """Return the pod template of the part's Deployment."""
    template: Object = one(objects, "Deployment", part.name)["spec"]["template"]
    return template


def identity(body: Object) -> tuple[str, str, str, str]:
    """Return API version, kind, namespace and name of an object."""
    metadata = body["metadata"]
    return body["apiVersion"], body["kind"], metadata.get("namespace", ""), metadata["name"]


def environment(objects: list[Object], part: Part) -> dict[str, str]:
    """Return the environment of the part's container; values of the pod are `pod`, its limits a number."""
    (container,) = pod_template(objects, part)["spec"]["containers"]
    return {
        entry["name"]: entry.get("value", str(1 << 29) if "resourceFieldRef" in entry.get("valueFrom", {}) else "pod")
        for entry in container["env"]
    }


def notes(part: Part, directory: Path, values: Object, **options: Any) -> str:
    """Return helm's notes after an installation; without a cluster, helm returns them as part of an object."""
    chart = shutil.copytree(part.chart, directory / "chart")
    text = (chart / "templates/NOTES.txt").read_text()
    frame = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata:\n  text: |-\n"
    (chart / "templates/notes.yaml").write_text(frame + textwrap.indent(text, "    "))
    printed: str = one(rendered(part, values, chart=chart, **options), "ConfigMap", "notes")["data"]["text"]
    return printed


UMBRELLA = Part("platform", "platform", {})
"""The parent chart that `umbrella` makes; its `chart` is not in the repository."""


def umbrella(folder: Path, values: Object, *, conditions: bool = True) -> Path:
    """Make a chart that depends on both of ours, with the files of `helm dependency update`."""
    chart = folder / UMBRELLA.name
    chart.mkdir()
    dependencies = [
        {"name": part.name, "version": current(), "repository": f"file://{part.chart}"}
        | ({"condition": f"{part.name}.enabled"} if conditions else {})
        for part in PARTS
    ]
    metadata = {"apiVersion": "v2", "name": UMBRELLA.name, "version": "1.0.0", "dependencies": dependencies}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(metadata))
    (chart / "values.yaml").write_text(yaml.safe_dump(values))
    helm("dependency", "update", chart=chart)
    return chart


SINCE_0_1_0 = {
    OPERATOR.name: (
        *("commonLabels", "controlPlane", "enabled", "extraObjects", "global", "podSecurityContext", "strategy"),
        "view",
    ),
    WEBHOOK.name: (
        *("commonLabels", "configuration", "dnsPolicy", "enabled", "extraObjects", "extraVolumeMounts", "extraVolumes"),
        *("global", "hostNetwork", "httpPort", "podSecurityContext", "strategy"),
    ),
}
"""Values that the first charts did not have: `helm upgrade --reuse-values` from them does not set these."""


def with_older_values(part: Part, directory: Path) -> Path:
    """Return the chart without the values that the first one did not have."""
    chart = shutil.copytree(part.chart, directory / "older")
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for name in SINCE_0_1_0[part.name]:
        del values[name]
    (chart / "values.yaml").write_text(yaml.safe_dump(values))
    return chart
