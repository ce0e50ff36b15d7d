"""Reviews of pods as API servers send them, and damaged ones."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

from support.cluster import builders
from support.cluster.builders import JOB, JOBSET

if TYPE_CHECKING:
    from random import Random

Object = dict[str, Any]

PODS: Final = {"group": "", "version": "v1", "resource": "pods"}
LABEL: Final = {"managed-mldiagnostics-gke": "true"}
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1.5, 10**30),
    *("", "x" * 5000, "\0", "ä\U0001f600", "~/"),
    *([], {}, [[]], {"": None}),
)
_RAW: Final = (b"NaN", b"1e999", b'"\\ud800"', b"\xff", b"[" * 2000, b'{"a":1,"a":2}', b"\xef\xbb\xbf", b"", b"nul")


def namespace(name: str = "ml", **labels: str) -> Object:
    """A namespace."""
    made = builders.thing(name, kind="Namespace", api_version="v1", labels=labels)
    del made["metadata"]["namespace"]
    return made


def jobset(name: str = "trainer", **parts: Any) -> Object:
    """A JobSet."""
    return builders.thing(name, kind="JobSet", api_version="jobset.x-k8s.io/v1alpha2", **parts)


def job(owner: Object | None, name: str = "trainer-workers-0", **parts: Any) -> Object:
    """A Job, usually of a JobSet."""
    return builders.thing(name, kind="Job", api_version="batch/v1", owner=owner, **parts)


def pod_of(owner: Object | None, *, settings: int = 30, namespace: str = "ml") -> Object:
    """A pod of a JobSet's Job as in admission, without a name; with 30 settings its review has 7 kB."""
    marks = {
        f"{JOBSET}/jobset-name": "trainer",
        f"{JOBSET}/replicatedjob-name": "workers",
        f"{JOBSET}/global-replicas": "2",
        f"{JOBSET}/job-index": "0",
        f"{JOBSET}/job-global-index": "0",
        f"{JOBSET}/restart-attempt": "0",
        f"{JOB}/job-completion-index": "3",
        f"{JOB}/job-name": "trainer-workers-0",
    }
    made = builders.thing("", kind="Pod", api_version="v1", namespace=namespace, labels=marks, owner=owner)
    metadata = {key: made["metadata"][key] for key in ("labels", "ownerReferences") if key in made["metadata"]}
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    container = {
        "name": "train",
        "image": "registry.example.com/training/trainer@sha256:" + "0123456789abcdef" * 4,
        "command": ["python", "-m", "train", "--config=/etc/train/config.yaml"],
        "env": [{"name": f"SETTING_{n}", "value": "value-of-setting-" + "x" * 60} for n in range(settings)],
        "resources": {"limits": {"google.com/tpu": "4"}, "requests": {"google.com/tpu": "4"}},
        "livenessProbe": probe,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "imagePullPolicy": "IfNotPresent",
    }
    manager = {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
    }
    fields: Object = {f'k:{{"name":"SETTING_{n}"}}': {".": {}, "f:name": {}, "f:value": {}} for n in range(settings)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "trainer-workers-0-3-",
            "annotations": dict(marks),
            "managedFields": [{**manager, "fieldsV1": {"f:spec": {"f:containers": {"f:env": fields}}}}],
            **metadata,
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "restartPolicy": "Never",
            "subdomain": "trainer",
            "tolerations": [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "status": {},
    }


def review_of(pod: Any, *, namespace: str = "ml", uid: str = "review-1", **changes: Any) -> Object:
    """Return a review of a pod's creation; `changes` are fields of the request."""
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": PODS,
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": PODS,
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:job-controller",
            "groups": ["system:authenticated"],
        },
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | changes}


def encoded(review: Any) -> bytes:
    """Encode JSON as an API server does."""
    return json.dumps(review, separators=(",", ":")).encode()


def spoiled(review: Object, random: Random) -> bytes:
    """Damage a review in one to four places, and its text in one of three cases."""
    whole = json.loads(json.dumps(review))
    for _ in range(random.randint(1, 4)):
        _spoil(whole, random)
    body = encoded(whole)
    if random.random() < 0.66:
        return body
    at = random.randrange(len(body) + 1)
    end = random.choice((at, at + 1, min(at + 50, len(body)), len(body)))
    return body[:at] + random.choice(_RAW) + body[end:]


def _spoil(whole: Object, random: Random) -> None:
    """Choose a random part, mostly of the pod, and replace or remove it."""
    node: Any = whole["request"]["object"] if _has_pod(whole) and random.random() < 0.7 else whole
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and random.random() < 0.8:
            node = node[key]
            continue
        break
    what = random.random()
    if what < 0.3:
        del node[key]
    elif what < 0.5:
        node[key] = [node[key]]
    elif what < 0.6 and isinstance(node, dict):
        node[random.choice(("", "env", "name", "metadata", "ä\0"))] = node[key]
    else:
        node[key] = copy.deepcopy(random.choice(_ODD))


def _has_pod(whole: Object) -> bool:
    request = whole.get("request")
    return isinstance(request, dict) and isinstance(request.get("object"), dict)
