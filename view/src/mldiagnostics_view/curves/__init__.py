"""Curves of one run: points on disk, summaries in memory, buckets for a visible window."""
