"""Nodes: jobs in pools (local and Slurm), their journal, and experiments spread over them."""
