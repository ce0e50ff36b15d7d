"""A missing package is reported with its install command."""

from __future__ import annotations

import pytest
from mldiagnostics import extras
from mldiagnostics.errors import MissingExtraError


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.inner", "json.no_such_module"])
def test_a_missing_package_names_its_extra(module: str) -> None:
    with pytest.raises(MissingExtraError, match=r"^otlp: needs .*pip install '\./sdk\[otlp\]'"):
        extras.require(module, extra="otlp", needed_for="otlp:")


def test_an_installed_package_is_well() -> None:
    extras.require("email.mime", extra="otlp", needed_for="otlp:")
