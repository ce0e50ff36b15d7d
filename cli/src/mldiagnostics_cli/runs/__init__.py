"""Work of `mldiag runs`."""
