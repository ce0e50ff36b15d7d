"""Installed operator on a cluster: `helm test` passes, and its pods satisfy Pod Security `restricted`."""

import pytest
from demo.installation import NAMESPACE, OPERATOR, Helm
from demo.kubectl import Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_helm_test_writes_and_deletes_an_object_in_the_default_storage(helm: Helm) -> None:
    report = helm("test", OPERATOR, f"--namespace={NAMESPACE}", "--timeout=120s")
    assert "Phase:          Succeeded" in report


def test_its_pods_are_restricted(kubectl: Kubectl) -> None:
    """The API server warns about running pods that the label would forbid."""
    labelled = ("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    output = kubectl(*labelled, "--dry-run=server", "--overwrite", "--warnings-as-errors")
    assert "labeled" in output
