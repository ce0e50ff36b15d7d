"""`mldiag diagnose`, and the verdict of `mldiag capture`: words for the findings about a session."""
