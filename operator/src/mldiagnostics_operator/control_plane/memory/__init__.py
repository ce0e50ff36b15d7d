"""Memory of reported runs; pure."""
