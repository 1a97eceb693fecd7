"""Verbs that check and decide claims."""
