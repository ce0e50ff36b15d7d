"""The operator: turns MLDiagnosticsConnection objects into stored profiles."""
