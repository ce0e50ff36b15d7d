"""Charts rendered to plain objects, with and without the parts for helm only."""

import copy
import functools
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from cluster.progress import ClusterError, tail
from cluster.tools import tool
from cluster.versions import KUBERNETES

from release.parts import NAMESPACE, Part

Object = dict[str, Any]

# Read by helm only.
HELM_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
HELM_ANNOTATIONS = ("helm.sh/resource-policy",)
HOOK = "helm.sh/hook"
# Order of application: dependencies first, webhook configurations last.
FIRST = ("CustomResourceDefinition", "ServiceAccount", "ConfigMap", "Secret")
LAST = ("MutatingWebhookConfiguration",)


def helm(*arguments: str, chart: Path) -> str:
    """Run a helm command on a chart and return its output.

    Raises:
        ClusterError: helm failed; the message quotes its error.
    """
    verb, *rest = arguments
    done = subprocess.run([tool("helm"), verb, *rest, chart], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`helm {' '.join(arguments)} {chart}` ended with {done.returncode}:\n{tail(done.stderr)}")
    return done.stdout


def rendered(
    part: Part,
    values: Mapping[str, Any] | None = None,
    *,
    release: str = "",
    namespace: str = NAMESPACE,
    chart: Path | None = None,
) -> list[Object]:
    """Render a part's chart with these values and return every object, hooks included.

    Args:
        part: The part to render.
        values: Values by dotted path.
        release: Name of the release; empty: the name of the part.
        namespace: Namespace of the release.
        chart: Another folder or archive to render instead of the part's chart.

    Raises:
        ClusterError: the values are rejected or a template fails.
    """
    settings = [argument for key, value in (values or {}).items() for argument in ("--set-json", setting(key, value))]
    options = ["--namespace", namespace, "--kube-version", KUBERNETES, *settings]
    template = helm if chart else _of_own_chart
    text = template("template", release or part.name, *options, chart=chart or part.chart)
    # libyaml: 0.04 s for the operator's objects instead of 0.35 s.
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


_of_own_chart = functools.cache(helm)
"""Renders a chart of this repository with the same values once: helm needs 0.2 s."""


def setting(key: str, value: Any) -> str:
    """Return an argument for `--set-json`."""
    return f"{key}={json.dumps(value)}"


def portable(objects: Sequence[Object]) -> list[Object]:
    """Return the objects without hooks and without labels and annotations for helm only."""
    return [_without_helm(each) for each in objects if HOOK not in each["metadata"].get("annotations", {})]


def _without_helm(item: Object) -> Object:
    plain = copy.deepcopy(item)
    metadata = plain["metadata"]
    for field, names in (("labels", HELM_LABELS), ("annotations", HELM_ANNOTATIONS)):
        kept = {name: value for name, value in metadata.pop(field, {}).items() if name not in names}
        if kept:
            metadata[field] = kept
    return plain


def namespace_object() -> Object:
    """Return the release's namespace with Pod Security `restricted`, which both parts satisfy."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def ordered(part: Part, values: Mapping[str, Any] | None = None, *, chart: Path | None = None) -> list[Object]:
    """Return the objects of a part for `kubectl apply`, dependencies first."""
    objects = portable(rendered(part, values, chart=chart))
    ranks = {kind: rank - len(FIRST) for rank, kind in enumerate(FIRST)} | dict.fromkeys(LAST, 1)
    return sorted(objects, key=lambda each: ranks.get(each["kind"], 0))


def everything(part: Part, values: Mapping[str, Any] | None = None, *, chart: Path | None = None) -> list[Object]:
    """Return the namespace and all objects of a part, for one file."""
    return [namespace_object(), *ordered(part, values, chart=chart)]


class _Dumper(yaml.SafeDumper):
    """Dumper that quotes strings which Go's YAML reads as numbers: `1e5`, `0o17`."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(0o[0-7]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)$"),
    list("-+.0123456789"),
)


def as_yaml(objects: Sequence[Object]) -> str:
    """Write objects as one YAML stream."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True, explicit_start=True)
