"""Diagnosis of captures: a Job for each, and its result in the status."""
