"""Sources of events that the program does not record itself."""
