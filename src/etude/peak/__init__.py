"""What load a system bears, found at the least benchmarking time."""
