"""One rule decides where a job's log is, for writers and readers."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.location import CloudLog, cloud_log, log_url
from support.records import texts


def place(log: str | None = None, *, storage: str | None = None, job: str = "job", **env: str) -> str:
    return log_url(log=log, logger_name="goodput_job", job_name=job, env=env, run_storage=storage)


@pytest.mark.parametrize("log", ["/a/log", "log", "file:///a/log", "gs://bucket/a", "/a/job_timeline.jsonl"])
def test_a_log_that_is_named_is_the_log(log: str) -> None:
    assert place(log, storage="/run", MLDIAG_GOODPUT_LOG="/root", MLDIAG_STORAGE="/storage") == log


def test_the_variable_is_a_root_for_logs() -> None:
    env = {"MLDIAG_GOODPUT_LOG": "gs://bucket/logs/", "MLDIAG_STORAGE": "/storage"}
    assert place(storage="/run", **env) == "gs://bucket/logs/goodput_job/job"


def test_the_storage_is_a_root_for_more() -> None:
    assert place(storage="gs://bucket", MLDIAG_STORAGE="/storage") == "gs://bucket/goodput/goodput_job/job"
    assert place(MLDIAG_STORAGE="/storage") == "/storage/goodput/goodput_job/job"
    assert place() == "mldiagnostics/goodput/goodput_job/job"


@pytest.mark.parametrize("url", ["gs://bucket/log", "file:///log"])
def test_a_url_that_was_taken_for_a_path_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="lacks a slash; use a string"):
        place(str(PurePosixPath(url)))
    with pytest.raises(ConfigurationError, match="lacks a slash"):
        place(MLDIAG_GOODPUT_LOG=str(PurePosixPath(url)))


def test_names_are_names_of_files() -> None:
    assert place("", storage="/s", job="../../etc") == "/s/goodput/goodput_job/..-..-etc-74ccf3c5b4c19a81"


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("cloud-logging:", CloudLog("", "", "goodput_job", "a/b c")),
        ("cloud-logging://", CloudLog("", "", "goodput_job", "a/b c")),
        ("cloud-logging://project", CloudLog("project", "", "goodput_job", "a/b c")),
        ("cloud-logging://project/other/name", CloudLog("project", "", "other", "name")),
        ("cloud-logging:http://host:1", CloudLog("", "http://host:1", "goodput_job", "a/b c")),
    ],
)
def test_cloud_logging_gets_both_names(root: str, expected: CloudLog) -> None:
    assert cloud_log(place(root, job="a/b c")) == expected
    assert cloud_log(place(job="a/b c", MLDIAG_GOODPUT_LOG=root)) == expected


@given(texts(), texts())
def test_names_come_through_cloud_logging_unchanged(logger: str, job: str) -> None:
    url = log_url(log="cloud-logging://p", logger_name=logger, job_name=job, env={})
    assert cloud_log(url) == CloudLog("p", "", logger, job)


@pytest.mark.parametrize(
    "url", ["cloud-logging:", "cloud-logging://p/l", "cloud-logging:ftp://h/l/j", "cloud-logging://p//j"]
)
def test_less_than_a_log_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="cloud-logging://<project>"):
        cloud_log(url)
