"""The way of a record in its process: a buffer, one thread that drains it, and one worker for each sink."""
