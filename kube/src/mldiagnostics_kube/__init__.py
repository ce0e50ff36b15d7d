"""What all processes in a cluster do alike: API client, informers, lease, certificates, HTTP, settings, logs."""
