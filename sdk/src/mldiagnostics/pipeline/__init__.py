"""The path of a record in its process.

A buffer, one thread that drains it, one worker per sink.
"""
