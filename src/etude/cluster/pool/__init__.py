"""Pools run jobs on nodes, so that an experiment can use more than one machine."""
