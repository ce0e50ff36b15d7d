"""Adapters of frameworks, one module each, imported when needed."""
