"""Recorders: the events of a job into its log."""
