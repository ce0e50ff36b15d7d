from __future__ import annotations

from pathlib import Path

import pytest
from mldiagnostics_api import names
from mldiagnostics_api.injection import InjectionReason, InjectionSettings
from mldiagnostics_api.workloads.kinds import WORKLOADS, WorkloadKind
from mldiagnostics_api.workloads.matching import MatchReason
from mldiagnostics_api.workloads.owners import WorkloadRun
from mldiagnostics_api.workloads.variables import InjectedIdentity, variable_names, variables
from support.cluster import builders as a

PAGE = (Path(__file__).parents[3] / "docs/reference/injection.md").read_text(encoding="utf-8")
OPTS_IN = {MatchReason.WORKLOAD_LABEL, MatchReason.POD_LABEL, MatchReason.NAMESPACE_LABEL}
SETTINGS = InjectionSettings(
    cluster="c", storage="s", sinks=("x",), view_url="v", control_plane_url="u", control_plane_ca="p"
)


@pytest.mark.parametrize("reason", [*InjectionReason, *(reason for reason in MatchReason if reason not in OPTS_IN)])
def test_every_reason_is_explained(reason: str) -> None:
    assert f"`{reason}`" in PAGE


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if not w.groups], ids=lambda workload: workload.kind)
def test_every_kind_and_variable_is_documented(workload: WorkloadKind) -> None:
    assert workload.kind in PAGE
    body = a.thing("w", kind=workload.kind, api_version=workload.api_version)
    identity = InjectedIdentity.of(WorkloadRun(body), workload, cluster="c", namespace="ml")
    peer = variables(identity, SETTINGS, pod_labels={}, peer_url="http://u")
    for name in {*variable_names(identity, SETTINGS, pod_labels={}), *(variable["name"] for variable in peer)}:
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("key", [k for n, k in vars(names).items() if n.endswith(("_ANNOTATION", "_LABEL"))])
def test_every_label_and_annotation_is_documented(key: str) -> None:
    assert key in PAGE
