"""How runs start and end: the run of this process, the outcome of a run, the history of its attempts."""
