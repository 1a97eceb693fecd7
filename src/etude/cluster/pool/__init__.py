"""Where measurements are made when one machine does not do: jobs, and the pools that run them on nodes of their own."""
