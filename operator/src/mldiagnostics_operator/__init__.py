"""The operator: stores profiles on request of MLDiagnosticsConnection objects."""
