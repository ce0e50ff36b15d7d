from dataclasses import fields
from pathlib import Path

import pytest
from cluster.certificates import make_certificates
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.workloads.variables import InjectionSettings
from mldiagnostics_kube.process.settings import declared
from mldiagnostics_webhook.config import WebhookConfig, load, reference

VARIABLES = [setting.variable for setting in declared(WebhookConfig).values()]
ROOT = Path(__file__).parents[2]


def test_every_field_has_its_own_variable() -> None:
    assert len({field.name for field in fields(WebhookConfig)}) == len(set(VARIABLES)) == len(fields(WebhookConfig))


@given(st.sets(st.sampled_from(VARIABLES)))
def test_property_empty_means_unset(empty: set[str]) -> None:
    assert load(dict.fromkeys(empty, " ")) == WebhookConfig()


@given(st.sampled_from(VARIABLES), st.text(max_size=20))
def test_property_any_text_is_parsed_or_rejected_by_name(variable: str, text: str) -> None:
    message = ""
    try:
        load({variable: text})
    except ConfigurationError as fault:
        message = str(fault)
    assert not message or variable in message


def test_settings_are_injected_into_pods(tmp_path: Path) -> None:
    ca = make_certificates(tmp_path, hosts=["a"]).ca.read_text()
    config = load(
        {
            "MLDIAG_STORAGE": "gs://bucket/runs",
            "MLDIAG_SINKS": "otlp://collector:4317, jsonl:",
            "MLDIAG_VIEW_URL": "https://view.example.com",
            "MLDIAG_CONTROL_PLANE_URL": "https://control.ml.svc:8443",
            "MLDIAG_CONTROL_PLANE_CA": ca,
            "MLDIAG_PROFILER_PORT": "9012",
        }
    )
    assert config.injected("train") == InjectionSettings(
        cluster="train",
        storage="gs://bucket/runs",
        sinks=("otlp://collector:4317", "jsonl:"),
        view_url="https://view.example.com",
        control_plane_url="https://control.ml.svc:8443",
        control_plane_ca=ca,
        profiler_port=9012,
    )
    assert WebhookConfig().injected("train") == InjectionSettings(cluster="train")


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(
            {
                "MLDIAG_STORAGE": "ftp://bucket",
                "MLDIAG_SINKS": "jsonl:,otlp",
                "MLDIAG_VIEW_URL": "view.example.com",
                "MLDIAG_CONTROL_PLANE_CA": "-----BEGIN",
                "MLDIAG_PORT": "70000",
                "MLDIAG_LOG_LEVEL": "LOUD",
            }
        )
    message = str(raised.value)
    for part in (
        "MLDIAG_STORAGE: 'ftp://bucket' is not a storage location",
        "MLDIAG_SINKS: 'jsonl:,otlp' has 'otlp': not a URL of the sink otlp; write otlp: or otlp://host:4317",
        "MLDIAG_VIEW_URL: 'view.example.com' is not an http(s) URL",
        "is not a certificate in PEM",
        "MLDIAG_PORT: '70000' is not a port",
        "MLDIAG_LOG_LEVEL: 'LOUD' is not a log level; use one of DEBUG",
    ):
        assert part in message


def test_the_reference_page_is_current() -> None:
    page = ROOT / "docs/reference/webhook-env.md"
    assert page.read_text() == reference(), "write it again: python -m mldiagnostics_webhook.config > that file"
