"""Events of a job: their model, payloads and clocks."""
