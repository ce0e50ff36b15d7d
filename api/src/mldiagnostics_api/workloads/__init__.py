"""Workloads and their pods: kinds, owners, labels, positions, variables."""
