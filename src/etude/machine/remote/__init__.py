"""Other machines: their hosts file, the way to them, and what one trial on several of them is."""
