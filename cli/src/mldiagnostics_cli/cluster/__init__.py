"""The cluster of a command: its connection, its errors in words, and ports of its pods."""
