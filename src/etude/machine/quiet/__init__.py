"""A machine made quiet, and put back exactly as it was."""
