"""The watches of runs and of all that shows how they go."""
