"""Configurations within the limit of a record: the largest values give way, all others stay."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.values import keep
from mldiagnostics.run.config_fitting import fitting_configs

LIMIT = 2000
VALUES = st.one_of(st.integers(), st.text(max_size=1500), st.lists(st.floats(allow_nan=False), max_size=200))


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=8))
def test_property_configurations_fit_the_limit_and_name_each_value_that_is_left_out(user: dict[str, Any]) -> None:
    configs = {"software": {"framework": "JAX"}, "user": user}
    fitting, left_out = fitting_configs(configs, max_bytes=LIMIT)
    assert keep(fitting, max_bytes=sys.maxsize)[1] <= LIMIT
    assert fitting["software"] == configs["software"]
    assert {name: value for name, value in fitting["user"].items() if name not in left_out} == {
        name: value for name, value in user.items() if name not in left_out
    }
    assert all(str(fitting["user"][name]).startswith("<left out: ") for name in left_out)
    assert bool(left_out) == (keep(configs, max_bytes=sys.maxsize)[1] > LIMIT)
