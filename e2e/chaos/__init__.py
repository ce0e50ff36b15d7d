"""Attacks and disruptions on a cluster, and their effect on tenants who do nothing wrong."""
