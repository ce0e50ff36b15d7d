"""Captures: from an `MLDiagnosticsConnection` to stored traces and a final status."""
