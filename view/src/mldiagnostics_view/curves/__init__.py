"""Curves of one run: points on disk, summaries in memory, buckets of a window."""
