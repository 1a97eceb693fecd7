"""Experiments over a pool: each part is a job, and the results of the parts are merged into one results directory."""
