"""A pool by Slurm: the commands, their output, and what it means for a job."""
