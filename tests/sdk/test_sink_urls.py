"""One form of sinks: a comma list of URLs, each of which makes a sink."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import sinks
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sink_urls import SCHEMES, check_sink_url, parse_sinks, split_sinks

NEED_A_RUN_OF_THEIRS = {"mlflow", "wandb"}
addresses = st.text("ab19:/.,- []", max_size=12) | st.sampled_from(
    ["", "/runs", "gs://runs/x", "gs://", "gs://b/x", "file:///a%2Cb", "file://h/x", "s3://runs", "az://b-", "://",
     "//host:4317", "//[::1]:4317", "//[:::]:1", "//host:65536", "host:4317/", "//host/path", "https://h/x", "ftp://h",
     ":9464", ":0", "h:9464", "-"]
)  # fmt: skip
urls = st.builds("{}:{}".format, st.sampled_from([*SCHEMES, "otel", ""]), addresses) | st.text(max_size=20)


def is_url(text: str) -> bool:
    try:
        check_sink_url(text)
    except ConfigurationError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "items"),
    [("", ()), (",", ()), (" jsonl:, otlp://c:4317 ,,jsonl:", ("jsonl:", "otlp://c:4317")), ("stdout:", ("stdout:",))],
)
def test_a_list_is_read_item_by_item_each_once(text: str, items: tuple[str, ...]) -> None:
    assert split_sinks(text) == parse_sinks(text) == items


@given(st.lists(urls, max_size=6))
def test_a_list_that_was_joined_is_read_back(items: list[str]) -> None:
    kept = list(dict.fromkeys(item for item in items if is_url(item) and item == item.strip()))
    assert parse_sinks(",".join(kept)) == tuple(kept)


@given(urls)
def test_a_valid_url_makes_a_sink_and_an_invalid_one_does_not(url: str) -> None:
    if url.partition(":")[0] in NEED_A_RUN_OF_THEIRS:
        return
    if is_url(url):
        assert sinks.sink_maker(url)
    else:
        with pytest.raises(ConfigurationError, match=r"; (write|begin it with one of) "):
            sinks.sink_maker(url)


@given(st.text("a:/", min_size=1))
def test_a_location_without_scheme_is_a_path(path: str) -> None:
    assert is_url(f"tensorboard:{path}") == ("://" not in path)


def test_an_invalid_item_is_named_with_valid_examples() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^'otlp': not a URL of the sink otlp; write otlp: or otlp://host:4317$"
    ):
        parse_sinks("jsonl:,otlp")
    with pytest.raises(ConfigurationError, match=r"^'otel:': not a sink URL; begin it with one of cloud-logging:, "):
        parse_sinks("otel:")


def test_every_sink_has_a_form_and_every_form_a_sink() -> None:
    assert set(SCHEMES) == set(sinks._MODULES)
