"""Sinks are chosen by URL; what is none is told with what there is."""

from __future__ import annotations

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sinks import sink_maker
from support.records import origin


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jsonl:", "jsonl"),
        ("jsonl:/runs", "jsonl:/runs"),
        ("jsonl:gs://bucket/runs", "jsonl:gs://bucket/runs"),
        ("stdout:", "stdout"),
    ],
)
def test_a_url_makes_its_sink_without_touching_anything(url: str, name: str) -> None:
    maker = sink_maker(url)
    assert maker.name == name
    assert maker.make(origin("/nowhere")) is not maker.make(origin("/nowhere"))


@pytest.mark.parametrize("url", ["", "jsonl", "nonsense:", "nonsense://host", ":", "JSONL:"])
def test_another_url_is_refused_with_what_there_is(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is no sink for records: .* jsonl:, .*stdout:"):
        sink_maker(url)


@pytest.mark.parametrize("url", ["jsonl:s3://bucket", "jsonl:gs://", "stdout:file"])
def test_a_malformed_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        sink_maker(url)
