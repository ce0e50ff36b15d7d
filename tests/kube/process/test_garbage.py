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


GROWING_PROGRAM = """
import asyncio, gc, weakref
from mldiagnostics_kube.process.garbage import collected_on_growth
class Node: pass

async def main():
    collected, before = [], gc.get_threshold()
    async with collected_on_growth(2**20), asyncio.timeout(60):
        kept = [[number] for number in range(10_000)]
        gc.collect()  # what survives is old
        node = Node()
        node.itself = node
        gc.collect()
        weakref.finalize(node, collected.append, True)
        del node
        kept += [[number] for number in range(200_000)]  # young collections, and a quarter of new objects
        print(collected == [])
        while not collected:
            await asyncio.sleep(0)
        print(gc.get_threshold()[2] > before[2])
    print(gc.get_threshold() == before)

asyncio.run(main())
"""


def test_old_garbage_is_collected_when_the_process_has_grown() -> None:
    done = subprocess.run([sys.executable, "-c", GROWING_PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]
