"""Load-picking policies: one module each (interface: `policy.py`)."""
