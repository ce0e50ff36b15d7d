"""Snapshots of histories, stored between processes."""
