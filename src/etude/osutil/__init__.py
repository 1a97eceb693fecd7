"""The operating system, asked in one way: whole files, locks, mounts, whose paths may be trusted."""
