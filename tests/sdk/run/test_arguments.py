"""Arguments of any kind: a run can always start, and invalid ones are reported."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.run import ApplicationFramework, Framework, RlOrchestrator
from mldiagnostics.run.arguments import RunArguments, normalized_location, read_arguments
from mldiagnostics.run.settings import read_settings

PARAMETERS = [
    *("name", "run_group", "configs", "gcs_path", "base_url", "cluster_id", "project", "region"),
    *("metrics_record_interval_sec", "on_demand_xprof", "log_system_metrics", "environment", "framework"),
    *("serving_engine", "run_workload_id", "metric_only_run", "metrics_exporter_config", "accelerator_orchestrator"),
    *("application_framework", "rl_orchestrator", "storage", "sinks", "tags", "notes"),
]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Theirs(Enum):
    MAXTEXT = "theirs"


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.one_of(st.text(), st.integers())),
    st.dictionaries(st.text(), st.integers()),
    st.sampled_from([object(), Unprintable(), Theirs.MAXTEXT, Framework.JAX, print, int, {"mode": 3}, "ftp://x"]),
)


def read(passed: dict[str, Any], env: dict[str, str] | None = None) -> tuple[RunArguments, dict[str, str]]:
    problems: dict[str, str] = {}
    settings = read_settings(env or {}, problems)
    platforms = (env or {}).get("JAX_PLATFORMS", "")
    return read_arguments(passed, settings=settings, platforms=platforms, problems=problems), problems


def meant(**passed: Any) -> RunArguments:
    arguments, problems = read({"name": "job", **passed})
    assert problems == {}
    return arguments


@given(st.dictionaries(st.sampled_from(PARAMETERS), ODD))
def test_any_arguments_give_a_run(passed: dict[str, Any]) -> None:
    arguments, problems = read(passed)
    assert arguments.name.strip()
    assert arguments.sinks
    assert arguments.environment in {"autopush", "staging", "prod"}
    assert all(isinstance(text, str) and text for text in problems.values())


@given(ODD, st.sampled_from(["on_demand_xprof", "log_system_metrics", "metric_only_run"]))
def test_an_invalid_flag_is_reported(value: Any, flag: str) -> None:
    _, problems = read({"name": "job", flag: value})
    assert (flag in problems) == (value is not None and not isinstance(value, bool))


def test_missing_arguments_have_googles_defaults() -> None:
    arguments = meant()
    assert (arguments.environment, arguments.framework, arguments.metrics_record_interval_s) == (
        "prod",
        Framework.DETECT,  # there it is JAX, also for programs that use another one
        10.0,
    )
    assert (arguments.on_demand_xprof, arguments.metric_only_run, arguments.storage) == (False, False, "")
    assert (arguments.log_system_metrics, arguments.sinks) == (True, ("jsonl:",))


@pytest.mark.parametrize(
    ("passed", "kept"), [("maxtext", "MAXTEXT"), ("MaxText", "MAXTEXT"), (ApplicationFramework.AXLEARN, "AXLEARN")]
)
def test_frameworks_are_named_in_any_case(passed: Any, kept: str) -> None:
    assert meant(application_framework=passed).application_framework.name == kept
    assert meant(rl_orchestrator="tunix").rl_orchestrator is RlOrchestrator.TUNIX


@pytest.mark.parametrize(
    ("passed", "region"),
    [
        ("us-central1", "us-central1"), ("us-central1-a", "us-central1"), ("europe-west4-b", "europe-west4"),
        (None, None), ("", None),
    ],
)  # fmt: skip
def test_a_region_may_be_a_zone_or_nothing(passed: str | None, region: str | None) -> None:
    assert meant(region=passed).region == region


@pytest.mark.parametrize(("passed", "used"), [(5, "5"), (2.5, "2.5"), (Path("a/b"), "a/b"), (Theirs.MAXTEXT, "theirs")])
def test_a_name_that_is_not_a_string_is_converted(passed: Any, used: str) -> None:
    arguments, problems = read({"name": passed})
    assert arguments.name == used
    assert f"is not a string; '{used}' is used" in problems["name"]


def test_an_invalid_region_does_not_fail() -> None:
    arguments, problems = read({"name": "job", "region": "the moon"})
    assert arguments.region is None
    assert "looked up" in problems["region"]


@pytest.mark.parametrize("name", [None, "", "  ", True, b"job"])
def test_a_run_without_a_name_is_reported_and_gets_one(name: Any) -> None:
    arguments, problems = read({"name": name})
    assert arguments.name == "run"
    assert "name" in problems


@pytest.mark.parametrize(
    ("location", "normal"),
    [
        ("gs://b//x///y/", "gs://b/x/y"), ("gs://b/", "gs://b"), ("/", "/"), ("//a//", "/a"), ("runs/", "runs"),
        ("file:///a//b/", "file:///a/b"), ("", ""),
    ],
)  # fmt: skip
def test_locations_are_written_one_way(location: str, normal: str) -> None:
    assert normalized_location(location) == normal
    assert normalized_location(normal) == normal


def test_the_nearest_setting_of_storage_wins() -> None:
    env = {"MLDIAG_STORAGE": "gs://env"}
    assert read({"name": "x"}, env)[0].storage == "gs://env"
    assert read({"name": "x", "gcs_path": "gs://path//"}, env)[0].storage == "gs://path"
    assert read({"name": "x", "gcs_path": "gs://path", "storage": Path("/data")}, env)[0].storage == "/data"


@pytest.mark.parametrize("place", [{"storage": "ftp://b"}, {"gcs_path": "https://x"}])
def test_an_unsupported_storage_is_reported(place: dict[str, str]) -> None:
    arguments, problems = read({"name": "job", **place})
    assert arguments.storage == ""
    assert next(iter(place)) in problems


def test_the_nearest_setting_of_sinks_wins() -> None:
    exporters = {"mode": ["otel"], "userConfig": "cloud_logging"}
    env = {"MLDIAG_SINKS": "stdout:, jsonl:"}
    assert read({"name": "x"}, env)[0].sinks == ("stdout:", "jsonl:")
    assert read({"name": "x", "metrics_exporter_config": exporters}, env)[0].sinks == ("otlp:", "cloud-logging:")
    passed = {"name": "x", "metrics_exporter_config": exporters, "sinks": ["tensorboard:"]}
    assert read(passed, env)[0].sinks == ("tensorboard:",)
    assert "metrics_exporter_config" in read({"name": "x", "metrics_exporter_config": {"mode": ["carrier pigeon"]}})[1]


def test_configurations_of_frameworks_are_taken() -> None:
    assert meant(configs=SimpleNamespace(lr=0.1)).configs == {"lr": 0.1}
    arguments, problems = read({"name": "job", "configs": 5})
    assert arguments.configs == {"value": 5}
    assert "configs" in problems


def test_pathways_is_known_by_its_platform() -> None:
    arguments, _ = read({"name": "job"}, {"JAX_PLATFORMS": "proxy,cpu"})
    assert arguments.accelerator_orchestrator.name == "PATHWAYS"


@pytest.mark.parametrize("tags", ["baseline, b c", ["baseline", " b c "], ("baseline", "b c", "baseline")])
def test_tags_are_texts_of_one_line(tags: Any) -> None:
    assert meant(tags=tags).tags == ("baseline", "b c")


@pytest.mark.parametrize(
    ("given_tags", "kept", "message"),
    [
        (["a", 3, "x" * 65], ("a",), "has tags that are left out: 3, 'xxx"),
        (
            ["a", "two\nlines"],
            ("a",),
            "left out: 'two\\nlines'; pass at most 32 texts of 1 to 64 characters in one line",
        ),
        ({"a": 1}, (), "is not a list of texts and is ignored"),
    ],
)
def test_invalid_tags_are_left_out_and_reported(given_tags: Any, kept: tuple[str, ...], message: str) -> None:
    arguments, problems = read({"name": "job", "tags": given_tags})
    assert arguments.tags == kept
    assert message in problems["tags"]


def test_notes_that_are_too_long_are_cut_and_reported() -> None:
    arguments, problems = read({"name": "job", "notes": "n" * 5000})
    assert len(arguments.notes) == 2000
    assert "has more than 2000 characters" in problems["notes"]
