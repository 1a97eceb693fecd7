"""Sentences on results: nothing here knows where they are shown."""
