"""Diagnosis of profiles: summaries of traces, and the findings that rules draw from the summaries of all hosts."""
