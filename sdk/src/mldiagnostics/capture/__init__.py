"""On-demand profiles of running processes, all hosts at once; knows nothing of Kubernetes."""
