"""Work of `mldiag capture`."""
