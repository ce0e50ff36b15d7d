from __future__ import annotations

import doctest

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_cli.captures import arguments


def test_the_examples_hold() -> None:
    assert doctest.testmod(arguments).failed == 0


@pytest.mark.parametrize("text", ["", "2", "0s", "-1s", "2h", "1e3s", "0.1ms"])
def test_a_duration_needs_its_unit(text: str) -> None:
    with pytest.raises(ConfigurationError, match="pass a value such as 500ms, 2s or 1m"):
        arguments.milliseconds(text)
