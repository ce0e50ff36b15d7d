"""Installed operator on a cluster: `helm test` passes, and its pods satisfy Pod Security `restricted`."""

import pytest
from demo.installation import NAMESPACE, OPERATOR, Helm
from demo.kubectl import Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_helm_test_uses_the_default_storage_and_the_control_plane(helm: Helm) -> None:
    report = helm("test", OPERATOR, f"--namespace={NAMESPACE}", "--timeout=120s")
    assert report.count("Phase:          Succeeded") == 2


def test_the_pods_of_the_operator_are_restricted(kubectl: Kubectl) -> None:
    """The API server warns about running pods that the label would forbid."""
    labelled = ("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    output = kubectl(*labelled, "--dry-run=server", "--overwrite", "--warnings-as-errors")
    assert "labeled" in output
