"""Causes of a difference between two tests: further pairs of instrumented trials, and the time of each cause."""
