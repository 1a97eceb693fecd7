"""A response over configurations: which samples to take, what is between them, and what it says."""
