"""Generated files of the cluster: definitions, registration, reference pages."""
