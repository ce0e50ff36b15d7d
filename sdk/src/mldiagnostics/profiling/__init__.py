"""Profiles taken in the training process: those that the program asks for, and those that others ask for."""
