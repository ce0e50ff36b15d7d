"""Targets of `mldiag capture` as users write them. Pure.

They are addresses, or pods of a cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.ranges import Ranges
from mldiagnostics_api.workloads.kinds import SELECTABLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics_api.captures.targets import TargetFilter


_SHORT_KINDS: Final = {
    "lws": "LeaderWorkerSet",
    "deploy": "Deployment",
    "sts": "StatefulSet",
    "pod": "Pod",
    "po": "Pod",
}
_KINDS: Final = {kind.lower(): kind for kind in SELECTABLE_KINDS} | _SHORT_KINDS
_REQUIREMENT: Final = re.compile(r"\s*([^=!,\s]+)\s*(==|=|!=)\s*([^=!,\s]*)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetNarrowing:
    """Selected pods of a workload; the fields of `target` in an object."""

    ranks: str | None = None
    slices: str | None = None
    nodes: tuple[str, ...] = ()
    container: str | None = None
    limit: int | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields that are set."""
        given = {
            "ranks": self.ranks,
            "slices": self.slices,
            "nodes": list(self.nodes) or None,
            "container": self.container,
            "limit": self.limit,
        }
        return {name: value for name, value in given.items() if value is not None}

    def filter(self) -> TargetFilter:
        """Return the fields as the filter of targets. Raises `ConfigurationError`."""
        from mldiagnostics_api.captures.targets import TargetFilter  # noqa: PLC0415 - half a second, only for pods

        try:
            return TargetFilter(
                ranks=Ranges.parse(self.ranks) if self.ranks else None,
                slices=Ranges.parse(self.slices) if self.slices else None,
                nodes=frozenset(self.nodes) or None,
                container=self.container,
                limit=self.limit,
            )
        except ValueError as error:
            raise ConfigurationError(f"--ranks or --slices: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTarget:
    """Pods to capture; exactly one of `run`, `pods`, `selector` and `kind` is set."""

    run: str = ""
    pods: tuple[str, ...] = ()
    selector: str = ""
    kind: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """A word for the names of objects and sessions."""
        return self.name or self.run or (self.pods[0] if self.pods else "capture")

    def fields(self, narrowing: TargetNarrowing) -> dict[str, Any]:
        """Return `podName` or `target` of an MLDiagnosticsConnection.

        A run must have the name of its MLRun.

        Raises:
            ConfigurationError: Pods are named and narrowed, or the selector is not valid.
        """
        narrowed = narrowing.fields()
        if self.pods:
            if narrowed:
                raise ConfigurationError(
                    f"--{next(iter(narrowed))}: not possible with pods by name; name the workload or use --selector"
                )
            return {"podName": ",".join(self.pods)}
        if self.selector:
            return {"target": {"selector": parse_selector(self.selector), **narrowed}}
        if self.run:
            return {"target": {"runRef": {"name": self.run}, **narrowed}}
        return {"target": {"workloadRef": {"kind": self.kind, "name": self.name}, **narrowed}}


def is_address(text: str) -> bool:
    """Return whether a target is the address of a host.

    It has a port then, or is an IP address, a domain or localhost.

    >>> is_address("host-0:9999"), is_address("10.0.0.7"), is_address("trainer"), is_address("jobset/trainer")
    (True, True, False, False)
    """
    if "/" in text:
        return False
    if ":" in text or text == "localhost":
        return True
    try:
        ip_address(text)
    except ValueError:
        return "." in text
    return True


def parse_targets(texts: Sequence[str], selector: str | None) -> ClusterTarget | None:
    """Return the pods that are meant; None if the targets are addresses.

    Raises:
        ConfigurationError: There is no target, several that cannot be captured at once, or an unknown kind.
    """
    if selector is not None:
        if texts:
            raise ConfigurationError(f"{texts[0]} and --selector: both are given; pass only one of them")
        return ClusterTarget(selector=selector)
    clusterly = [text for text in texts if not is_address(text)]
    if not clusterly:
        return None
    if len(clusterly) < len(texts):
        raise ConfigurationError(
            f"{' '.join(texts)}: addresses and targets of a cluster cannot be mixed; run two captures, or add :PORT to "
            "hosts"
        )
    pods = tuple(text.partition("/")[2] for text in clusterly if _kind_of(text) == "Pod")
    if pods and len(pods) == len(clusterly):
        return ClusterTarget(pods=pods)
    if len(clusterly) > 1:
        raise ConfigurationError(
            f"{' '.join(clusterly)}: only one run or workload can be captured at a time; use --selector, pod/NAME or "
            "HOST:PORT for several"
        )
    kind = _kind_of(clusterly[0])
    return ClusterTarget(kind=kind, name=clusterly[0].partition("/")[2]) if kind else ClusterTarget(run=clusterly[0])


def parse_selector(text: str) -> dict[str, Any]:
    """Return a selector of kubectl as `LabelSelector`.

    >>> parse_selector("app=trainer,tier!=test,gpu")
    {'matchLabels': {'app': 'trainer'}, 'matchExpressions': [{'key': 'tier', 'operator': 'NotIn', 'values': ['test']}, \
{'key': 'gpu', 'operator': 'Exists'}]}

    Raises:
        ConfigurationError: It is empty or has another form.
    """
    labels: dict[str, str] = {}
    expressions: list[dict[str, Any]] = []
    for part in _split(text):
        sets = re.fullmatch(r"\s*(\S+)\s+(in|notin)\s+\(([^()]*)\)\s*", part)
        match = _REQUIREMENT.fullmatch(part)
        if sets:
            values = [value.strip() for value in sets[3].split(",")]
            expressions.append({"key": sets[1], "operator": "In" if sets[2] == "in" else "NotIn", "values": values})
        elif match and match[2] != "!=":
            labels[match[1]] = match[3]
        elif match:
            expressions.append({"key": match[1], "operator": "NotIn", "values": [match[3]]})
        elif re.fullmatch(r"\s*!?[^\s!=()]+\s*", part):
            operator = "DoesNotExist" if part.strip().startswith("!") else "Exists"
            expressions.append({"key": part.strip().lstrip("!"), "operator": operator})
        else:
            raise ConfigurationError(
                f"--selector {text!r}: {part!r} is not a requirement; pass a selector such as key=value,key!=value"
            )
    given = {"matchLabels": labels, "matchExpressions": expressions}
    return {name: value for name, value in given.items() if value}


def _split(text: str) -> Iterable[str]:
    """Split at the commas that are not in parentheses."""
    return re.split(r",(?![^()]*\))", text)


def _kind_of(text: str) -> str:
    """Return the kind of KIND/NAME; empty for a run."""
    word, slash, name = text.partition("/")
    if not slash:
        return ""
    lower = word.lower().partition(".")[0]  # jobset.x-k8s.io/trainer, as kubectl prints it
    kind = _KINDS.get(lower) or _KINDS.get(lower.removesuffix("s"))
    if kind is None or not name:
        known = ", ".join(sorted(_KINDS))
        raise ConfigurationError(f"{text}: not a target; pass a run, HOST:PORT, or KIND/NAME with one of {known}")
    return kind
