"""Self-hosted diagnostics for ML workloads, importable without any third-party package."""
