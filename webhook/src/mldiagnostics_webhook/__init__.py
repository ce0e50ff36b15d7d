"""The webhook: injects run identity into pods on their creation, and denies none."""
