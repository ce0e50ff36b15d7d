"""Sinks are chosen by URL; another text is refused with the URLs that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sinks import sink_maker
from support.records import origin, records_in, run_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jsonl:", "jsonl"),
        ("jsonl:/runs", "jsonl:/runs"),
        ("jsonl:gs://bucket/runs", "jsonl:gs://bucket/runs"),
        ("stdout:", "stdout"),
        ("cloud-logging:", "cloud-logging"),
        ("otlp:", "otlp"),
        ("otlp://host:4317", "otlp://host:4317"),
        ("otlp+http://host:4318", "otlp+http://host:4318"),
        ("otlp+https://host", "otlp+https://host"),
        ("prometheus::9464", "prometheus::9464"),
        ("tensorboard:/logs", "tensorboard:/logs"),
        ("tensorboard:gs://bucket/logs", "tensorboard:gs://bucket/logs"),
    ],
)
def test_a_url_makes_its_sink_without_touching_anything(url: str, name: str) -> None:
    maker = sink_maker(url)
    assert maker.name == name
    assert maker.make(origin("/nowhere")) is not maker.make(origin("/nowhere"))


def test_dependencies_of_a_sink_load_in_its_own_thread(tmp_path: Path) -> None:
    urls = [
        "cloud-logging:",
        "otlp:",
        "otlp+http://host",
        "prometheus::9464",
        "tensorboard:gs://bucket",
        "jsonl:",
        "jsonl:s3://bucket",
        "jsonl:az://runs",
    ]
    ended = run_program(
        f"for url in {urls}: sinks.sink_maker(url)\n"
        "heavy = ('google.auth', 'google.cloud.', 'grpc', 'obstore', 'opentelemetry.proto.', 'prometheus_client', "
        "'requests', 'tensorboard')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])",
        tmp_path,
    )
    assert ended.stdout == "[]\n", ended.stderr


@pytest.mark.parametrize(
    ("url", "extra"),
    [
        ("cloud-logging:", "cloud-logging"),
        ("otlp:", "otlp"),
        ("otlp+http://host", "otlp"),
        ("prometheus::9464", "prometheus"),
        ("tensorboard:/logs", "tensorboard"),
    ],
)
def test_a_sink_without_its_extra_is_left_out_with_the_install_command(url: str, extra: str, tmp_path: Path) -> None:
    without_packages = "-S"
    ended = run_program(
        "from mldiagnostics import machinelearning_run\n"
        f"machinelearning_run('x', storage=sys.argv[1], sinks=[{url!r}], log_system_metrics=False)\n"
        "metrics.record('loss', 1.0)",
        tmp_path,
        without_packages,
    )
    assert ended.returncode == 0, ended.stderr
    assert f"pip install './sdk[{extra}]'" in ended.stderr
    assert [record.name for record in records_in(tmp_path)] == ["loss"]


@pytest.mark.parametrize("url", ["", "nonsense:", "nonsense://host", ":", "JSONL:"])
def test_an_unknown_url_is_rejected_with_the_known_schemes(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r": not a sink URL; begin it with one of .* jsonl:, .*stdout:"):
        sink_maker(url)


@pytest.mark.parametrize(
    "url", ["jsonl", "jsonl:ftp://bucket", "jsonl:s3://", "jsonl:gs://", "stdout:file", "otlp://host:0"]
)
def test_a_malformed_address_is_rejected_with_an_example(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r": not a URL of the sink [a-z]+; write [a-z]+:"):
        sink_maker(url)
