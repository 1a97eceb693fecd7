"""Pictures of results: plain data first, then drawn by matplotlib, or written with scripts that redraw them."""
