"""The result of a Job: its findings with the names that the operator knows."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.findings import Diagnosis, Finding, FindingHost
from mldiagnostics_operator.diagnoses.result import RunDiagnosis, capture_diagnosis, sentence

RESULTS = [
    {"pod": f"trainer-{rank}", "node": f"n{rank}", "rank": rank, "file": f"volume:///ml/p/s/trainer-{rank}.xplane.pb"}
    for rank in range(4)
]


def slow(*hosts: FindingHost, **changes: Any) -> Finding:
    values = {"severity": "critical", "message": "m", "next_step": "n", "phase": "input", "cost_s": 0.02}
    return Finding(
        **{"code": "SlowHost", "cost_share": 0.46, "hosts": hosts, "host_count": len(hosts), **values, **changes}
    )


def test_hosts_have_the_names_that_the_operator_knows() -> None:
    lie = FindingHost("trainer-2", rank=0, pod="kube-apiserver", node="control-plane")
    diagnosis = capture_diagnosis(
        [RunDiagnosis(Diagnosis("s", 4, 20, 0.04, (slow(lie, FindingHost("nobody")),)))], RESULTS, runs=["r"]
    )
    assert diagnosis.findings is not None
    assert [target.model_dump() for target in diagnosis.findings[0].targets or ()] == [
        {"pod": "trainer-2", "node": "n2", "rank": 2}
    ]
    assert diagnosis.summary == "SlowHost: trainer-2 in input, 46 % of the step"
    assert (diagnosis.state, diagnosis.critical, diagnosis.warnings, diagnosis.runs) == ("Done", 1, 0, ["r"])
    assert sentence(diagnosis) == "SlowHost: trainer-2 in input, 46 % of the step. m"


def test_each_run_of_a_capture_keeps_its_first_finding() -> None:
    many = Diagnosis("s", 2, 20, 0.04, tuple(slow(FindingHost("trainer-0"), cost_s=0.02 - n / 1000) for n in range(9)))
    healthy = Finding(code="NoProblemFound", severity="info", message="m", next_step="n")
    runs = [RunDiagnosis(Diagnosis("s", 2, 20, 0.04, (healthy,)), "b"), RunDiagnosis(many, "a")]
    diagnosis = capture_diagnosis(runs, RESULTS, runs=["a", "b"])
    codes = [(finding.run_id, finding.code) for finding in diagnosis.findings or ()]
    assert codes == [("a", "SlowHost"), ("b", "NoProblemFound"), *[("a", "SlowHost")] * 6]
    assert diagnosis.critical == 9


words = st.text(max_size=1000)
findings = st.builds(
    Finding,
    code=words,
    severity=st.sampled_from(["critical", "warning", "info"]),
    message=words,
    next_step=words,
    hosts=st.lists(st.builds(FindingHost, words | st.just("trainer-1"), pod=words), max_size=16).map(tuple),
    phase=st.none() | words,
    operation=st.none() | words,
    cost_s=st.floats(0, 1e15),
    cost_share=st.floats(0, 1e15),
)


@given(st.lists(findings, min_size=1, max_size=32))
def test_any_result_becomes_a_bounded_status_with_known_pods_alone(listed: list[Finding]) -> None:
    diagnosis = capture_diagnosis([RunDiagnosis(Diagnosis("s", 1, 1, None, tuple(listed)))], RESULTS)
    content = diagnosis.model_dump_json(by_alias=True, exclude_none=True)
    assert len(content) < 128 * 1024
    assert "\x1b" not in content
    pods = {target.pod for finding in diagnosis.findings or () for target in finding.targets or ()}
    assert pods <= {result["pod"] for result in RESULTS}
    assert diagnosis.model_validate_json(content) == diagnosis
