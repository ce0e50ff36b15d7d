"""`mldiag mcp`: the commands of `mldiag` as tools of the Model Context Protocol."""
