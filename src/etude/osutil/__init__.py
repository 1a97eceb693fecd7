"""Operating system functions: atomic file writes, locks, processes, mounts, trusted paths."""
