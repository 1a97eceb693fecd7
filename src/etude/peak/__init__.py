"""Search for the maximum sustainable load of a server (its peak rate) in the least benchmarking time."""
