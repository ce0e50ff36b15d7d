import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.process.settings import declared
from mldiagnostics_operator.config import OperatorConfig, load, reference

VARIABLES = [setting.variable for setting in declared(OperatorConfig).values()]
ROOT = Path(__file__).parents[2]


def test_every_field_is_a_variable_of_its_own() -> None:
    assert len({field.name for field in fields(OperatorConfig)}) == len(set(VARIABLES)) == len(fields(OperatorConfig))


@given(st.sets(st.sampled_from(VARIABLES)))
def test_empty_means_unset_as_a_property(empty: set[str]) -> None:
    assert load(dict.fromkeys(empty, " ")) == OperatorConfig()


@given(st.sampled_from(VARIABLES), st.text(max_size=20))
def test_any_text_is_read_or_rejected_by_name_as_a_property(variable: str, text: str) -> None:
    message = ""
    try:
        load({variable: text})
    except ConfigurationError as error:
        message = str(error)
    assert not message or variable in message or "Lease" in message


def test_settings_are_read(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"maxDurationSeconds": 5}))
    config = load(
        {
            "POD_NAME": "operator-0",
            "POD_UID": "u-1",
            "MLDIAG_POLICY_FILE": str(policy),
            "MLDIAG_WATCH_NAMESPACES": "b, a,,a",
            "MLDIAG_HTTP_PORT": "0",
            "MLDIAG_LOG_LEVEL": "debug",
            "MLDIAG_LEASE_DURATION_SECONDS": "30.5",
            "MLDIAG_IGNORE_MANAGED_ADDON": "True",
            "MLDIAG_CONTROL_PLANE": "true",
            "MLDIAG_PEER_PORT": "0",
        }
    )
    assert config.policy.max_duration_ms == 5000
    assert config.watch_namespaces == ("a", "b")
    assert config.http_port == 0
    assert config.log_level == "DEBUG"
    assert config.lease_duration_s == 30.5
    assert config.ignore_managed_addon
    assert config.control_plane
    assert config.peer_port == 0
    assert load({}).peer_port is None
    assert config.holder("7-x") == "operator-0/u-1/7-x"


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"maxDuration": 5}')
    with pytest.raises(ConfigurationError) as raised:
        load(
            {
                "POD_NAMESPACE": "Not A Name",
                "MLDIAG_POLICY_FILE": str(policy),
                "MLDIAG_VOLUME_ROOT": "relative",
                "MLDIAG_HTTP_PORT": "70000",
                "MLDIAG_LOG_LEVEL": "LOUD",
                "MLDIAG_LEASE_RETRY_SECONDS": "6",
                "MLDIAG_SHUTDOWN_GRACE_SECONDS": "nan",
                "MLDIAG_IGNORE_MANAGED_ADDON": "yes",
            }
        )
    message = str(raised.value)
    for part in (
        "POD_NAMESPACE: 'Not A Name'",
        "maxDuration: unknown",
        "MLDIAG_VOLUME_ROOT: 'relative' is not an absolute path",
        "MLDIAG_HTTP_PORT: '70000' is not a port",
        "MLDIAG_LOG_LEVEL: 'LOUD' is not a log level; use one of DEBUG",
        "duration > renew deadline > 2 x retry, but the values are 15, 10 and 6 s",
        "MLDIAG_SHUTDOWN_GRACE_SECONDS: 'nan'",
        "MLDIAG_IGNORE_MANAGED_ADDON: 'yes' is not a switch",
    ):
        assert part in message


def test_a_missing_policy_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path / "absent.json"))):
        load({"MLDIAG_POLICY_FILE": str(tmp_path / "absent.json")})


def test_the_reference_page_is_current() -> None:
    page = ROOT / "docs/reference/operator-env.md"
    assert page.read_text() == reference(), "write it again: python -m mldiagnostics_operator.config > that file"
