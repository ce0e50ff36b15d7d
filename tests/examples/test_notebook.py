"""Example: a run from a notebook, whose cells a real kernel executes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.programs.examples import run_source

if TYPE_CHECKING:
    from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "examples/notebook/train.ipynb"
KERNEL = """
import json, sys
from jupyter_client.manager import start_new_kernel

outputs = []

def keep(message):
    if message["msg_type"] in {"execute_result", "error"}:
        outputs.append(message["content"])

manager, client = start_new_kernel(kernel_name="python3", startup_timeout=120)
for cell in CELLS:
    client.execute_interactive(cell, timeout=120, allow_stdin=False, output_hook=keep)
manager.shutdown_kernel()
print(json.dumps([output.get("data", output) for output in outputs]))
"""


def cells() -> list[str]:
    """Return the code of the notebook; its cell that trains runs twice, as its text suggests."""
    document: dict[str, Any] = json.loads(NOTEBOOK.read_text())
    assert all(not cell.get("outputs") for cell in document["cells"])
    code = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    [training] = [cell for cell in code if "run.step(" in cell]
    code.insert(code.index(training), training)
    return code


@pytest.mark.peers
def test_the_cells_run_in_a_kernel_and_read_their_run(tmp_path: Path) -> None:
    source = KERNEL.replace("CELLS", repr(cells()))
    example = run_source(source, tmp_path, environment="notebook", IPYTHONDIR=str(tmp_path / "ipython"))
    shown = [output.get("text/plain", output) for output in json.loads(example.out)]
    closed, rows, curve, account = shown
    assert "complete=True" in closed
    assert "'name': 'notebook', 'phase': 'Completed', 'step': 199" in rows
    assert curve.startswith("[(0, ")
    assert "'productive': " in account
    row = example.row
    assert (row.phase, row.step) == ("Completed", 199)
    losses = [float(str(value)) for _, value in example.series("loss")]
    assert len(losses) == 200
    assert max(losses[-20:]) < max(losses[:20])
    assert example.account().disruptions == 0
