"""Diagnosis of profiles: summaries of traces, and the findings of rules."""
