"""Captures that a viewer starts from the page of a run."""
