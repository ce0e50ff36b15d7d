"""Captures: from a request over its targets to a plan."""
