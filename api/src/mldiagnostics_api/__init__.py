"""What the cluster sees of mldiagnostics: kinds, names and the pure decisions shared by its programs."""
