"""`mldiag trace`: logs, goodput and captures as a trace for Perfetto."""

SEVERITIES = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
"""Severities of `--severity`, in order."""
