"""Displays of a running measurement, updated between trials only."""
