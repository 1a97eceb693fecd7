"""Resources of the machine that are varied: CPUs, memory, I/O, disks, network, and whatever a hook changes."""
