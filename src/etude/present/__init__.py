"""Results as people read them: on a terminal, as a page, as text."""
