"""`mldiag trace`: logs, goodput and captures as a trace for Perfetto."""
