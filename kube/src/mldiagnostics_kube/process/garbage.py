"""The garbage collector of a process that serves."""

import gc


def exempt_loaded() -> None:
    """Exempt all objects that exist now from garbage collections.

    A full collection visits every object at once, and nothing is served meanwhile. Modules and classes are 70 000
    objects, which take 20 ms on an idle machine and 80 ms on a busy one, and are never garbage.
    """
    gc.collect()
    gc.freeze()
