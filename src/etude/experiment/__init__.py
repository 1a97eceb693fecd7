"""Tests, trials, schedules and the loop that runs them."""
