from __future__ import annotations

import doctest

from mldiagnostics_cli import values


def test_the_examples_hold() -> None:
    assert doctest.testmod(values).failed == 0
