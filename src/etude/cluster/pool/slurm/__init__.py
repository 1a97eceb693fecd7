"""A pool by Slurm: what is asked of its commands, what they answer, and what that means for a job."""
