"""`record` and `record_metrics` in every form that programs written for Google's SDK use, and in wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.records import records_in, run_program

if TYPE_CHECKING:
    from pathlib import Path

FORMS = {
    "positional": "metrics.record('loss', 0.5, 3, {'host': 'a'}, True)",
    "keywords": (
        "metrics.record(metric_name='loss', value=0.5, step=3, labels={'host': 'a'}, record_on_all_hosts=False)"
    ),
    "member": "metrics.record(metric_types.MetricType.LOSS, 0.5, step=3, labels={'host': 'a'})",
    "several": "metrics.record_metrics([{'metric_name': 'loss', 'value': 0.5, 'labels': {'host': 'a'}}], step=3)",
    "several, own step": (
        "metrics.record_metrics([{'metric_name': metric_types.MetricType.LOSS, 'value': 0.5, 'step': 3,"
        " 'labels': {'host': 'a'}}], True, 4)"
    ),
    "fast, then labels": "metrics.record('other', 0.5, 3); metrics.record('loss', 0.5, step=3, labels={'host': 'a'})",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("when", ["before", "during"])
def test_every_form_records_the_same(form: str, when: str, tmp_path: Path) -> None:
    lines = ["from mldiagnostics import metric_types", form, "begin().close()"]
    if when == "during":
        lines[1:] = ["run = begin()", form, "run.close()"]
    result = run_program("\n".join(lines), tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    record = records_in(tmp_path)[-1]
    assert (record.name, record.value, record.step, record.labels, record.unit) == ("loss", 0.5, 3, {"host": "a"}, "1")


def test_a_timestamp_can_be_given_for_one_or_several_metrics(tmp_path: Path) -> None:
    result = run_program(
        """
import datetime
metrics.record("a", 1.0, timestamp=1000.5)
metrics.record("b", 1.0, timestamp=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc))
several = [{"metric_name": "c", "value": 1.0}, {"metric_name": "d", "value": 1, "timestamp": 7}]
metrics.record_metrics(several, timestamp=5)
metrics.record_metrics([{"metric_name": "e", "value": 1.0}, {"metric_name": "f", "value": 1.0}])
begin().close()
""",
        tmp_path,
    )
    assert result.returncode == 0, result.stderr
    moments = {record.name: record.t for record in records_in(tmp_path)}
    assert moments.pop("e") == moments.pop("f")
    assert moments == {"a": 1000.5, "b": 1767225600.0, "c": 5.0, "d": 7.0}


@pytest.mark.parametrize(
    "call",
    [
        "record_metrics(None)",
        "record_metrics(3)",
        "record_metrics([1])",
        "record_metrics([{}])",
        "record_metrics({'metric_name': 'loss'})",
        "record(None, 1.0)",
        "record('loss', object())",
        "record('loss', None)",
        "record('loss', 1.0, labels=3)",
        "record('loss', 1.0, timestamp='now')",
        "record('loss', 1.0, timestamp=float('nan'))",
        "record('loss', 1, timestamp=float('inf'))",
        "record_metrics([{'metric_name': 'loss', 'value': 1.0, 'timestamp': float('nan')}])",
        "record()",
        "record('loss')",
        "record(value=1.0)",
    ],
)
def test_an_invalid_call_is_reported_once_and_counted(call: str, tmp_path: Path) -> None:
    body = f"""
metrics.record("before", 1.0)
for _ in range(3):
    metrics.{call}
metrics.record("after", 1.0)
run = begin()
print(sum(run.close().dropped.values()))
"""
    result = run_program(body, tmp_path)
    assert (result.returncode, result.stdout) == (0, "3\n")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert [record.name for record in records_in(tmp_path)] == ["before", "after"]
    assert sum(_number(record.value) for record in records_in(tmp_path, kind="drop")) == 3


BAD = ["1", "None", "{}", "{'metric_name': 'x'}", "{'metric_name': 'x', 'value': object()}", "Hostile()"]


@pytest.mark.parametrize("bad", BAD)
def test_an_invalid_item_does_not_affect_the_others(bad: str, tmp_path: Path) -> None:
    body = f"""
class Hostile:
    def __getitem__(self, key):
        raise RuntimeError(key)
run = begin()
metrics.record_metrics([{{"metric_name": "a", "value": 1}}, {bad}, {{"metric_name": "b", "value": 2.0}}])
print(sum(run.close().dropped.values()))
"""
    result = run_program(body, tmp_path)
    assert (result.returncode, result.stdout) == (0, "1\n")
    assert [record.name for record in records_in(tmp_path)] == ["a", "b"]


def test_a_misspelt_key_gets_a_suggestion(tmp_path: Path) -> None:
    body = "run = begin()\nmetrics.record_metrics([{'metricname': 'a', 'value': 1}])\nrun.close()"
    result = run_program(body, tmp_path)
    assert "did you mean metric_name by metricname?" in result.stderr


HINTS = {
    "record('loss', 1.0, stp=3)": "metrics.record: unknown parameter 'stp' is ignored; did you mean 'step'?",
    "record('loss', 1.0, 3, None, True, 5)": "metrics.record: too many positional arguments, the last 1 ignored; the",
    "record_metrics([{'metric_name': 'loss', 'value': 1.0}], steps=3)": (
        "metrics.record_metrics: unknown parameter 'steps' is ignored; did you mean 'step'?"
    ),
}


@pytest.mark.parametrize(("call", "hint"), HINTS.items())
def test_an_unknown_argument_is_reported_once_and_ignored(call: str, hint: str, tmp_path: Path) -> None:
    result = run_program(f"run = begin()\nfor _ in range(2):\n    metrics.{call}\nrun.close()", tmp_path)
    assert (result.returncode, len(result.stderr.splitlines())) == (0, 1)
    assert hint in result.stderr
    assert [(record.name, record.value) for record in records_in(tmp_path)] == [("loss", 1.0)] * 2


def _number(value: Any) -> float:
    assert isinstance(value, float)
    return value
