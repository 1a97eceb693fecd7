"""Commits of a git repository, and builds of them outside of it."""
