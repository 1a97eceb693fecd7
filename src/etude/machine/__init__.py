"""The machine that is measured on: what it is (`snapshot`) and what makes its numbers noisy (`doctor`)."""
