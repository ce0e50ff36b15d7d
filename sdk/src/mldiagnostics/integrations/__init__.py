"""Integrations with training frameworks and trackers, one module each."""
