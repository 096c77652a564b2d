"""The destination at an edge: what it shall hold, what became of it, and what may be pruned."""
