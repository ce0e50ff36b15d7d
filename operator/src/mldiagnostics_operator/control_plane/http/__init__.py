"""The HTTP servers of the control-plane API and their endpoints."""
