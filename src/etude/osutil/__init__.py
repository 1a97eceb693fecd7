"""What is asked of the operating system in one way everywhere: whole files, locks, mounts, and whose paths are trusted."""
