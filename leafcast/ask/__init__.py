"""Asks, from the session of a command to any node of the tree, and reading what is answered."""
