"""How runs start and end.

The run of this process, the outcome of a run, the history of its attempts.
"""
