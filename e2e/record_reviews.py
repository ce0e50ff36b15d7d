"""Record the admission reviews of pods from real controllers: `python record_reviews.py FOLDER`.

Needs the bare cluster: its API server runs on this machine and calls the recorder. Owners of kinds whose controllers
are not Go modules (Kubeflow, Pathways) are created here; the JobSets and Jobs below them are real.
"""

import base64
import json
import re
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import injection_workloads as workloads
from cluster import addons
from cluster.certificates import make_certificates
from cluster.progress import step
from cluster.providers import provider
from cluster.tools import tool
from demo.kubectl import Kubectl, eventually

Object = dict[str, Any]
Reviews = dict[str, Object]

NAMESPACE = "e2e-injection-reviews"
LABELS = {"managed-mldiagnostics-gke": "true", "team": "infra"}
# The API server calls webhooks in the order of configuration names: before and after JobSet and LeaderWorkerSet.
CONFIGURATIONS = {"0-recording": "/early", "mldiagnostics-recording": "/late"}
CREATED_BY_CONTROLLERS = {
    "jobset": workloads.jobset,
    "job": workloads.job,
    "cronjob": workloads.cron_job,
    "leaderworkerset": workloads.leader_worker_set,
    "rayjob": workloads.ray_job,
    "raycluster": workloads.ray_cluster,
    "rayservice": workloads.ray_service,
    "statefulset": workloads.stateful_set,
    "deployment": workloads.deployment,
    "pod": workloads.bare_pod,
}
FOREIGN = {
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "PathwaysJob": "pathways-job.pathways.domain/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "JAXJob": "kubeflow.org/v1",
    "MPIJob": "kubeflow.org/v2beta1",
}
PODS = {
    "jobset": r"jobset-workers-0-0-",
    "job": r"job-0-",
    "cronjob": r"cronjob-\d+-",
    "leaderworkerset-leader": r"leaderworkerset-0",
    "leaderworkerset-worker": r"leaderworkerset-0-1",
    "rayjob-head": r"rayjob-\w{5}-head-.*",
    "rayjob-worker": r"rayjob-\w{5}-workers-worker-",
    "rayjob-submitter": r"rayjob-",
    "raycluster-head": r"raycluster-head-.*",
    "rayservice-head": r"rayservice-\w{5}-head-.*",
    "statefulset": r"statefulset-0",
    "deployment": r"deployment-\w+-",
    "pod": r"pod",
    "trainjob": r"trainjob-workers-0-0-",
    "pathwaysjob": r"pathwaysjob-workers-0-0-",
    "pytorchjob": r"pytorchjob-worker-0",
    "jaxjob": r"jaxjob-worker-0",
    "mpijob-launcher": r"mpijob-launcher-",
    "mpijob-worker": r"mpijob-worker-0",
}
"""Titles of recordings, and a pattern of the pod's name or generateName."""


def main(folder: Path) -> None:
    """Record one review per title into the folder."""
    chosen = provider()
    chosen.up()
    kubectl = Kubectl(tool("kubectl"), chosen.kubeconfig)
    workloads.load_peers_image(chosen)
    for name in ("jobset", "lws", "kuberay"):
        addons.install(name, chosen)
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        with _recording(kubectl) as reviews, step("Recording the pods of every kind", about_s=90):
            _make(kubectl)
            wanted = {*PODS, "leaderworkerset-leader-early", "leaderworkerset-worker-early"}
            eventually(lambda: wanted <= reviews.keys(), "pods of every kind", deadline_s=180)
            for title in wanted:
                _write(folder / f"{title}.json", reviews[title], kubectl)
    finally:
        definitions = [_definition(kind)["metadata"]["name"] for kind in FOREIGN]
        kubectl("delete", "crd", *definitions, "--ignore-not-found")
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@contextmanager
def _recording(kubectl: Kubectl) -> Iterator[Reviews]:
    """Record reviews while the block runs; yield the first one per title."""
    reviews: Reviews = {}
    with tempfile.TemporaryDirectory() as folder:
        certificates = make_certificates(Path(folder), hosts=["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.certificate("apiserver"), certificates.key("apiserver"))
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(reviews))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for name, path in CONFIGURATIONS.items():
                url = f"https://127.0.0.1:{server.server_port}{path}"
                kubectl.apply(_configuration(name, url, certificates.ca.read_bytes()))
            yield reviews
        finally:
            kubectl("delete", "mutatingwebhookconfigurations", *CONFIGURATIONS, "--ignore-not-found")
            server.shutdown()


def _handler(reviews: Reviews) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if title := _title(review):
                early = self.path.startswith(CONFIGURATIONS["0-recording"])
                reviews.setdefault(f"{title}-early" if early else title, review)
            answer = {"uid": review["request"]["uid"], "allowed": True}
            body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:  # type: ignore[explicit-override]
            pass

    return Handler


def _title(review: Object) -> str | None:
    metadata = review["request"]["object"]["metadata"]
    name = metadata.get("name") or metadata["generateName"]
    return next((title for title, pattern in PODS.items() if re.fullmatch(pattern, name)), None)


def _configuration(name: str, url: str, ca: bytes) -> Object:
    webhook = {
        "name": "recording.diagon.gke.io",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


def _make(kubectl: Kubectl) -> None:
    """Create every kind of workload, and the objects that foreign controllers would create."""
    for name, make in CREATED_BY_CONTROLLERS.items():
        kubectl.apply(_placed(make(name, labels=LABELS)))
    for kind in FOREIGN:
        kubectl.apply(_definition(kind))
    kubectl("wait", "--for=condition=Established", "crd", *(_definition(kind)["metadata"]["name"] for kind in FOREIGN))
    owners = {kind: _created(kubectl, _foreign(kind)) for kind in FOREIGN}
    for kind in ("TrainJob", "PathwaysJob"):
        kubectl.apply(_owned(workloads.jobset(kind.lower()), owners[kind]))
    launcher = workloads.job("mpijob-launcher")
    launcher["spec"] |= {"completions": 1, "parallelism": 1, "completionMode": "NonIndexed"}
    kubectl.apply(_owned(launcher, owners["MPIJob"]))
    for kind in ("PyTorchJob", "JAXJob", "MPIJob"):
        marks = {"job-name": kind.lower(), "replica-type": "worker", "replica-index": "0", "job-role": "worker"}
        labels = {f"training.kubeflow.org/{key}": value for key, value in marks.items()}
        kubectl.apply(_owned(workloads.bare_pod(f"{kind.lower()}-worker-0", labels=labels), owners[kind]))


def _foreign(kind: str) -> Object:
    return {"apiVersion": FOREIGN[kind], "kind": kind, "metadata": {"name": kind.lower(), "labels": LABELS}, "spec": {}}


def _definition(kind: str) -> Object:
    group, _, version = FOREIGN[kind].partition("/")
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


def _placed(manifest: Object) -> Object:
    return manifest | {"metadata": manifest["metadata"] | {"namespace": NAMESPACE}}


def _owned(manifest: Object, owner: Object) -> Object:
    reference = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference |= {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    placed = _placed(manifest)
    return placed | {"metadata": placed["metadata"] | {"ownerReferences": [reference]}}


def _created(kubectl: Kubectl, manifest: Object) -> Object:
    kubectl.apply(_placed(manifest))
    item: Object = _get(kubectl, manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])
    return item


def _get(kubectl: Kubectl, api_version: str, kind: str, name: str) -> Object:
    group, slash, version = api_version.partition("/")
    resource = f"{kind}.{version}.{group}" if slash else kind
    item: Object = kubectl.get(resource, name, f"--namespace={NAMESPACE}")
    return item


def _write(file: Path, review: Object, kubectl: Kubectl) -> None:
    """Write the review and the owners of the pod, nearest first."""
    owners: list[Object] = []
    below = review["request"]["object"]
    while references := below["metadata"].get("ownerReferences"):
        [up] = (reference for reference in references if reference.get("controller"))
        below = _get(kubectl, up["apiVersion"], up["kind"], up["name"])
        owners.append({"apiVersion": up["apiVersion"], "kind": up["kind"], "metadata": _trimmed(below["metadata"])})
    pod = review["request"]["object"]
    pod["metadata"] = _trimmed(pod["metadata"])
    review["request"]["userInfo"].pop("extra", None)
    file.write_text(json.dumps({"review": review, "owners": owners}, indent=1, sort_keys=True) + "\n")


def _trimmed(metadata: Object) -> Object:
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    annotations = kept.get("annotations", {})
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return kept


if __name__ == "__main__":
    main(Path(sys.argv[1]))
