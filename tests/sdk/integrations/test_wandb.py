"""The forwarder to Weights & Biases, with the real one without a network; its file is read back."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sinks import sink_maker
from support.programs.examples import python, run_example, run_source

if TYPE_CHECKING:
    from pathlib import Path

# A W&B file: 7 bytes, then a LevelDB log: blocks of 32 KiB with pieces of (crc32, length, kind, data).
ROWS = """
import json, struct, sys
from wandb.proto.wandb_internal_pb2 import Record
data, at, whole, rows = open(sys.argv[1], "rb").read(), 7, b"", []
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    _, length, kind = struct.unpack_from("<IHB", data, at)
    whole += data[at + 7 : at + 7 + length]
    at += 7 + length
    if kind in (1, 4):
        record, whole = Record.FromString(whole), b""
        if record.WhichOneof("record_type") == "history":
            rows.append({item.key or "/".join(item.nested_key): json.loads(item.value_json)
                         for item in record.history.item})
print(json.dumps(rows))
"""


@pytest.mark.peers
def test_metrics_are_in_the_programs_run_and_in_our_files(tmp_path: Path) -> None:
    variables = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}
    example = run_example("trackers/with_wandb.py", tmp_path, environment="trackers", **variables)
    assert example.row.phase == "Completed"
    [file] = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    command = [python("trackers"), "-c", ROWS, str(file)]
    read = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    rows = [{key: value for key, value in row.items() if key[0] != "_"} for row in json.loads(read.stdout)]
    assert rows == [{"loss": 1 / (1 + step), "accuracy/split=train": step / 20} for step in range(20)]
    assert [step for step, _ in example.series("loss")] == list(range(20))


LATE = """
import wandb
import mldiagnostics as m
with wandb.init() as theirs:
    theirs.log({"own": 1}, step=100)
    with m.machinelearning_run("job", sinks=["jsonl:", "wandb:"], log_system_metrics=False):
        m.metrics.record("loss", 0.5, step=1)
        m.metrics.record("stepless", 2.0)
        m.metrics.record("loss", 0.25, step=100)
    assert theirs.step == 100, theirs.step
    theirs.log({"own": 2}, step=101, commit=True)
    print(dict(theirs.summary))
"""


@pytest.mark.peers
def test_steps_below_those_of_the_program_are_dropped(tmp_path: Path) -> None:
    variables = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    example = run_source(LATE, tmp_path, environment="trackers", **variables)
    for expected in ("'own': 2", "'loss': 0.25", "'stepless': 2"):
        assert expected in example.out
    assert "row of step 1 dropped, W&B is already at step 100" in example.err
    assert example.row.document["complaints"]["wandb-late"] == 1
    assert example.row.document["drops"] == {}
    assert [value for _, value in example.series("loss")] == [0.5, 0.25]


def test_a_wandb_sink_without_a_wandb_run_is_rejected_with_an_action() -> None:
    with pytest.raises(ConfigurationError, match=r"call wandb\.init\(\) before"):
        sink_maker("wandb:")


def test_the_wandb_sink_has_no_address() -> None:
    with pytest.raises(ConfigurationError, match=r"write wandb:$"):
        sink_maker("wandb:project")
