"""Bisection of a change of performance: the commit at which a metric steps, from noisy trials."""
