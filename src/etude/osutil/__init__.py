"""What is asked of the operating system in one way: whole files, locks, mounts, whose paths may be trusted."""
