"""The verbs about claims."""
