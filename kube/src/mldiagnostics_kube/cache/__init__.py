"""Watched objects in memory."""
