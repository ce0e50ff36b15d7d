"""Admission webhook that injects run identity into new pods and rejects none."""
