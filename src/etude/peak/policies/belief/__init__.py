"""Posterior of a server's peak rate and of the shape of its curve, given its trials."""
