"""Work of `mldiag explain`: why a pod or a workload has a run, or none."""
