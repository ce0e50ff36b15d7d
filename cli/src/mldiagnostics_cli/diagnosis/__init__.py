"""`mldiag diagnose` and the verdict of `mldiag capture`: words for findings."""
