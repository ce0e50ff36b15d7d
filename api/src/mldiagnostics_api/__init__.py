"""Kinds and names that the cluster sees, and pure decisions of all programs."""
