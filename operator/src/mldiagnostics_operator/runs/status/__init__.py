"""The status of runs: read, decide, write."""
