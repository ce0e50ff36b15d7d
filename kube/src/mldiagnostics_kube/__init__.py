"""Parts that all processes in a cluster share.

API client, informer, lease, certificates, HTTP servers, settings, logs and metrics.
"""
