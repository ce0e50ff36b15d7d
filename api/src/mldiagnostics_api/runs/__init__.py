"""Runs: the status of an MLRun, its signals, files and rows."""
