"""Decisions about automatic captures: slots, triggers, budgets, history; pure."""
