"""Names of pods and workloads as users write them."""

from __future__ import annotations

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.workloads.kinds import WORKLOADS
from mldiagnostics_cli.cluster.objects import ObjectName


def test_a_name_is_a_pod_or_has_a_kind() -> None:
    for text in ("trainer-0", "pod/trainer-0", "po/trainer-0"):
        assert (ObjectName.parse(text).is_pod, ObjectName.parse(text).name) == (True, "trainer-0")
    for workload in WORKLOADS:
        for kind in (workload.kind, workload.kind.lower(), workload.plural):
            assert ObjectName.parse(f"{kind}/x") == ObjectName(workload, "x")


def test_an_unknown_kind_lists_those_that_exist() -> None:
    with pytest.raises(ConfigurationError, match=r"'secret' is not a kind of workload; .* jobset, job, "):
        ObjectName.parse("secret/x")
