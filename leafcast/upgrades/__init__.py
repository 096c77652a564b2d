"""Releases of Leafcast on their way through the tree: what a node writes down for its launcher."""
