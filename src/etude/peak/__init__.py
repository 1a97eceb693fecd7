"""What load a system bears, found at the least bench time."""
