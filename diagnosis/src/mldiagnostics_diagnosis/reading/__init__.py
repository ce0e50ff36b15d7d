"""Reader of traces: from the bytes of an XSpace file to a summary.

It runs in a process of its own, with limits.
"""
