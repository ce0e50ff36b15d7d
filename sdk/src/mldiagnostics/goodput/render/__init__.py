"""Reports as people read them: a table for a terminal, a page for a browser."""
