"""Runs after their end: deleted in time, with their files on request."""
