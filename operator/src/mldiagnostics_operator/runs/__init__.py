"""The controller of runs: an MLRun for each opted-in workload."""
