"""Places that have runs: directories, buckets and clusters."""
