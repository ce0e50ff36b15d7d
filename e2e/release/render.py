"""A chart as plain objects: what `helm template` says, and the same without what only helm reads."""

import copy
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from cluster.progress import ClusterError, tail
from cluster.tools import KUBERNETES, tool

from release.parts import NAMESPACE, Part

Object = dict[str, Any]

# What only helm reads.
HELM_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
HELM_ANNOTATIONS = ("helm.sh/resource-policy",)
HOOK = "helm.sh/hook"
# What others need comes first; a webhook is called only when it is there.
FIRST = ("CustomResourceDefinition", "ServiceAccount", "ConfigMap", "Secret")
LAST = ("MutatingWebhookConfiguration",)


def helm(*arguments: str, chart: Path) -> str:
    """Run a helm command on a chart and return its output.

    Raises:
        ClusterError: helm refused; the message quotes it.
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
    """Every object of a part's chart, or of another one in its place, with these values, as helm would send it.

    Hooks are included; the release is called as the part unless `release` says otherwise. Raises:
        ClusterError: the values are refused or a template fails.
    """
    settings = [argument for key, value in (values or {}).items() for argument in ("--set-json", setting(key, value))]
    options = ["--namespace", namespace, "--kube-version", KUBERNETES, *settings]
    text = helm("template", release or part.name, *options, chart=chart or part.chart)
    return [document for document in yaml.safe_load_all(text) if document]


def setting(key: str, value: Any) -> str:
    """One `--set-json` argument."""
    return f"{key}={json.dumps(value)}"


def portable(objects: Sequence[Object]) -> list[Object]:
    """The same objects for people without helm: no hooks, no labels and annotations that only helm reads."""
    return [_without_helm(found) for found in objects if HOOK not in found["metadata"].get("annotations", {})]


def _without_helm(found: Object) -> Object:
    plain = copy.deepcopy(found)
    metadata = plain["metadata"]
    for field, names in (("labels", HELM_LABELS), ("annotations", HELM_ANNOTATIONS)):
        kept = {name: value for name, value in metadata.pop(field, {}).items() if name not in names}
        if kept:
            metadata[field] = kept
    return plain


def namespace_object() -> Object:
    """What `helm install --create-namespace` makes, with the strictest Pod Security, which both parts obey."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def ordered(part: Part, values: Mapping[str, Any] | None = None, *, chart: Path | None = None) -> list[Object]:
    """The objects of a part for people without helm: what others need, then the rest."""
    objects = portable(rendered(part, values, chart=chart))
    ranks = {kind: rank - len(FIRST) for rank, kind in enumerate(FIRST)} | dict.fromkeys(LAST, 1)
    return sorted(objects, key=lambda found: ranks.get(found["kind"], 0))


def everything(part: Part, values: Mapping[str, Any] | None = None, *, chart: Path | None = None) -> list[Object]:
    """One file for `kubectl apply`: the namespace and all objects of a part."""
    return [namespace_object(), *ordered(part, values, chart=chart)]


class _Dumper(yaml.SafeDumper):
    """Quotes strings that Go's YAML reads as numbers and PyYAML does not: `1e5`, `0o17`."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(0o[0-7]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)$"),
    list("-+.0123456789"),
)


def as_yaml(objects: Sequence[Object]) -> str:
    """Several objects as one YAML stream."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True, explicit_start=True)
