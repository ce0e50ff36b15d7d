"""The main job with a visible result: profile every host of a running JAX job, then show what was captured."""
