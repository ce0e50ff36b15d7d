"""Reports of a run to the control plane, loaded only where one is set."""
