from __future__ import annotations

from pathlib import Path

import pytest
from mldiagnostics_api import names
from mldiagnostics_api.injection import Reason, Settings
from mldiagnostics_api.matching import Why
from mldiagnostics_api.owners import Run
from mldiagnostics_api.variables import Identity, told, variables
from mldiagnostics_api.workloads import WORKLOADS, Workload
from support import builders as a

PAGE = (Path(__file__).parents[3] / "docs/reference/injection.md").read_text(encoding="utf-8")
OPTS_IN = {Why.WORKLOAD_LABEL, Why.POD_LABEL, Why.NAMESPACE_LABEL}
SETTINGS = Settings(cluster="c", storage="s", sinks=("x",), view_url="v", control_plane_url="u", control_plane_ca="p")


@pytest.mark.parametrize("reason", [*Reason, *(why for why in Why if why not in OPTS_IN)])
def test_every_reason_is_explained(reason: str) -> None:
    assert f"`{reason}`" in PAGE


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if not w.groups], ids=lambda workload: workload.kind)
def test_every_kind_and_variable_is_documented(workload: Workload) -> None:
    assert workload.kind in PAGE
    body = a.thing("w", kind=workload.kind, api_version=workload.api_version)
    identity = Identity.of(Run(body), workload, cluster="c", namespace="ml")
    peer = variables(identity, SETTINGS, pod_labels={}, peer_url="http://u")
    for name in {*told(identity, SETTINGS, pod_labels={}), *(variable["name"] for variable in peer)}:
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("key", [k for n, k in vars(names).items() if n.endswith(("_ANNOTATION", "_LABEL"))])
def test_every_label_and_annotation_is_documented(key: str) -> None:
    assert key in PAGE
