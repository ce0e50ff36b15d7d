"""Kubernetes clusters for tests and the demo: kind, a bare Linux machine, or the kubeconfig context in use."""
