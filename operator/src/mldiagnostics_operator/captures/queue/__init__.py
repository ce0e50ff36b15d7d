"""Everything that a capture waits for before its first request."""
