"""Configurations within the limit of a record: the largest values give way, all others stay."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.values import keep
from mldiagnostics.run.config_fitting import REST, fitting_configs

LIMIT = 2000
VALUES = st.one_of(st.integers(), st.text(max_size=1500), st.lists(st.floats(allow_nan=False), max_size=200))


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=8))
def test_property_configurations_fit_the_limit_and_name_each_value_that_is_left_out(user: dict[str, Any]) -> None:
    configs = {"software": {"framework": "JAX"}, "user": user}
    fitting, left_out = fitting_configs(configs, max_bytes=LIMIT)
    assert keep(fitting, max_bytes=sys.maxsize)[1] <= LIMIT
    assert fitting["software"] == configs["software"]
    fitted = dict(fitting["user"])
    more = str(fitted.pop(REST, "")) if REST not in user else ""
    assert {name: value for name, value in fitted.items() if name not in left_out} == {
        name: value for name, value in user.items() if name not in left_out
    }
    assert all(str(fitted[name]).startswith("<left out: ") for name in left_out if name in fitted)
    assert sum(name not in fitted for name in left_out) == int(more.strip("<").partition(" ")[0] or 0)
    assert bool(left_out) == (keep(configs, max_bytes=sys.maxsize)[1] > LIMIT)


def test_many_small_values_give_way_from_the_end() -> None:
    user = {"optimizer": "adam", **{f"layer_{number}_lr": 0.001 for number in range(3000)}}
    fitting, left_out = fitting_configs({"software": {"jax": "1"}, "user": user}, max_bytes=LIMIT)
    assert keep(fitting, max_bytes=sys.maxsize)[1] <= LIMIT
    assert fitting["software"] == {"jax": "1"}
    kept = list(fitting["user"].items())
    assert kept[:3] == [("optimizer", "adam"), ("layer_0_lr", 0.001), ("layer_1_lr", 0.001)]
    assert kept[-1] == (REST, f"<{len(left_out)} values left out>")
    assert len(kept) + len(left_out) == len(user) + 1
