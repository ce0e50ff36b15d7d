"""Queries of a job's time, with the names of ml-goodput-measurement."""
