"""JSON Schemas for kubeconform, made of Kubernetes' OpenAPI document and the CRDs."""

import functools
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from cluster.paths import E2E, cache
from cluster.progress import ClusterError, step, tail
from cluster.sources import go, go_environment
from cluster.tools import tool
from cluster.versions import KUBERNETES

Schema = dict[str, Any]

PROMETHEUS = ("PodMonitor", "PrometheusRule", "ServiceMonitor")
"""Kinds of the Prometheus operator, whose definitions are not here."""
REFERENCE = "#/definitions/"
# OpenAPI 2 cannot express that these are numbers or strings.
SCALARS = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}


def kubeconform(documents: str, crds: Iterable[Path] = (), *, skipped: Iterable[str] = ()) -> str:
    """Validate a YAML stream strictly; return the errors of kubeconform, empty if it is valid.

    Args:
        documents: The objects.
        crds: Files with the definitions of kinds that are not those of Kubernetes.
        skipped: Kinds without a schema.
    """
    with tempfile.TemporaryDirectory() as folder:
        for crd in crds:
            for name, schema in crd_schemas(crd.read_text()).items():
                (Path(folder) / name).write_text(schema)
        pattern = "{{ .Group }}_{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json"
        locations = [f"-schema-location={place / pattern}" for place in (kubernetes_schemas(), Path(folder))]
        command = [str(tool("kubeconform")), "-strict", f"-skip={','.join(skipped)}", *locations, "-"]
        done = subprocess.run(command, input=documents, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


@functools.cache
def kubernetes_schemas() -> Path:
    """Return the folder with a schema per kind, made once per version of Kubernetes and of this file.

    Raises:
        ClusterError: the Go module with the OpenAPI document cannot be downloaded.
    """
    maker = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    folder = cache() / "schemas" / f"{KUBERNETES}-{maker}"
    if not folder.exists():
        with step(f"Making the schemas of Kubernetes {KUBERNETES}", about_s=20):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                unfinished = Path(scratch) / "schemas"
                unfinished.mkdir()
                document = json.loads((kubernetes_module() / "api/openapi-spec/swagger.json").read_text())
                for name, schema in kind_schemas(document["definitions"]).items():
                    (unfinished / name).write_text(json.dumps(schema))
                if not folder.exists():
                    unfinished.replace(folder)
    return folder


def kubernetes_module() -> Path:
    """Return the folder of the Go module of Kubernetes; download it if it is missing."""
    done = subprocess.run(
        [go(), "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}"],
        cwd=E2E / "tools" / "cluster",
        env=go_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"the Go module k8s.io/kubernetes@v{KUBERNETES} cannot be downloaded:\n{tail(done.stderr)}")
    return Path(json.loads(done.stdout)["Dir"])


def kind_schemas(definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Return a self-contained schema of every kind by file name; unknown fields are errors."""
    closed = {name: SCALARS.get(name) or _closed(schema) for name, schema in definitions.items()}
    return {
        file_name(kind["group"], kind["kind"], kind["version"]): {
            "$ref": REFERENCE + name,
            "definitions": {used: closed[used] for used in _reachable(closed, name)},
        }
        for name, schema in definitions.items()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }


@functools.cache
def crd_schemas(crds: str) -> dict[str, str]:
    """Return the schema of each version of CustomResourceDefinitions, as JSON by file name."""
    schemas = {}
    for definition in yaml.load_all(crds, yaml.CSafeLoader):
        group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        for version in definition["spec"]["versions"]:
            schema = _closed(version["schema"]["openAPIV3Schema"])
            schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
            schemas[file_name(group, kind, version["name"])] = json.dumps(schema)
    return schemas


def file_name(group: str, kind: str, version: str) -> str:
    """Return the file name that kubeconform expects for a kind; the core group has only a version."""
    return f"{group or version}_{kind.lower()}_{version}.json"


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(part) for key, part in schema.items() if key != "properties"}
    if "properties" in schema:  # a field may be called like a keyword
        closed["properties"] = {name: _closed(part) for name, part in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        closed["type"] = ["integer", "string"]
    return closed


def _reachable(definitions: dict[str, Schema], start: str) -> set[str]:
    reached: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += _references(definitions[name])
    return reached


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for part in schema for name in _references(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].removeprefix(REFERENCE)] if isinstance(schema.get("$ref"), str) else []
    return own + [name for part in schema.values() for name in _references(part)]
