"""HTTP servers with bounds."""
