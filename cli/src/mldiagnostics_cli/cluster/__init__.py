"""Cluster of a command: its connection, its errors, and ports of its pods."""
