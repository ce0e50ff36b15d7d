"""The outcome of a capture in a cluster: every document of the checked shape can be shown."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st
from mldiagnostics_api.captures.capture_object import CaptureStatus
from mldiagnostics_cli.captures.by_object import show_result
from mldiagnostics_cli.captures.operator_verdict import show_verdict
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_kube.client.shapes import problem_of, shape_of
from support.cluster.hostile_documents import hostile_document, valid_document

PATH = "/apis/diagon.gke.io/v1alpha1/namespaces/ml/mldiagnosticsconnections/a"


def shown(document: object) -> str:
    assert isinstance(document, dict)
    status, out = CaptureStatus.of(document), StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        for output in OutputFormat:
            show_result(status, output)
        show_verdict(status)
    return out.getvalue()


def test_the_findings_of_the_operator_are_shown() -> None:
    text = shown(valid_document("GET", PATH))
    assert "SlowHost" in text
    assert "volume:///x/a" in text


@given(st.integers(0, 2**32))
def test_a_document_with_the_shape_of_a_capture_is_shown(seed: int) -> None:
    document = hostile_document(Random(seed), "GET", PATH)
    assume(problem_of(document, shape_of(PATH)) is None)
    shown(document)
