"""Experiments over a pool: their parts are jobs, and what the jobs leave becomes one results directory."""
