"""Demo: capture a profile of every host of a running JAX job and show the result."""
