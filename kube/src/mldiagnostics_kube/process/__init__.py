"""Settings, logs, metrics, clock and retries of a process."""
