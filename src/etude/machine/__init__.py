"""The machine under measurement: its description (`snapshot`) and the causes of noise on it (`doctor`)."""
