"""Captures: from an observed `MLDiagnosticsConnection` to stored traces and a final status."""
