"""A full collection does not visit what a process has loaded at its start."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, weakref
from mldiagnostics_kube.process.garbage import exempt_loaded
import mldiagnostics_operator.replica
loaded = len(gc.get_objects())
exempt_loaded()
class Node: pass
node, collected = Node(), []
node.itself = node
weakref.finalize(node, collected.append, True)
del node
gc.collect()
print(loaded > 10_000, len(gc.get_objects()) < loaded / 10, collected == [True])
"""


def test_loaded_objects_are_exempt_and_later_ones_are_collected() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]
