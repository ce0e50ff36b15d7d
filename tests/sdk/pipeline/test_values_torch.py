"""Values of PyTorch tensors."""

from __future__ import annotations

import json
import subprocess

import pytest
from support.programs import environments
from support.records import DEADLINE_S, ROOT

pytestmark = pytest.mark.peers

PROGRAM = """
import json
import torch
from mldiagnostics.pipeline.values import keep, settle

def recorded(value):
    try:
        return settle(keep(value)[0])
    except Exception as error:
        return getattr(error, "reason", type(error).__name__)

single, series = torch.tensor(2.0), torch.arange(3.0)
parameter = torch.nn.Parameter(torch.tensor(2.0))
kept = [keep(each)[0] for each in (single, series, series[1], parameter, parameter * 1, [single, 1.0])]
with torch.no_grad():
    for each in (single, series, parameter):
        each.fill_(7.0)
print(json.dumps({
    "in place": [settle(each) for each in kept],
    "types": [recorded(torch.ones((), dtype=each)) for each in (torch.bfloat16, torch.int64, torch.bool)],
    "shapes": [recorded(torch.ones(each)) for each in ((1,), (1, 1), (2, 2), (0,), (1000,))],
    "no numbers": [recorded(torch.ones((), dtype=torch.complex64)), recorded(torch.ones((), device="meta"))],
    "dict": keep({"loss": torch.tensor(2.0)})[0],
}))
"""


def test_tensors_are_recorded_as_they_were_at_the_call() -> None:
    try:
        python = environments.interpreter("torch")
    except environments.Unavailable as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [python, "-c", PROGRAM],
        env={"PYTHONPATH": str(ROOT / "sdk/src")},
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
        check=True,
    )
    values = json.loads(done.stdout)
    assert values["in place"] == [2.0, [0.0, 1.0, 2.0], 1.0, 2.0, 2.0, [2.0, 1.0]]
    assert values["types"] == [1.0, 1.0, 1.0]
    assert values["shapes"] == [1.0, 1.0, "bad-value", "bad-value", "too-large"]
    assert all(isinstance(each, str) for each in values["no numbers"])
    assert values["dict"] == {"loss": 2.0}
