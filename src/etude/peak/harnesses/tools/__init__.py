"""Tools whose reports are understood as they are: one module each."""
