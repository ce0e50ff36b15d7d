"""Automatic captures: schedules, triggers and budgets, from objects to captures."""
