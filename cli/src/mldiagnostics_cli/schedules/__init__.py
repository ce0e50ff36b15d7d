"""`mldiag schedules`: automatic captures of a cluster."""
