"""Publication of the control plane: its address, certificate and endpoints."""
