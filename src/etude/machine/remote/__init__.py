"""Other machines: the hosts file, connections, and trials on several of them."""
