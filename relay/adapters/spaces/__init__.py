"""Spaces that need no API server: in a key-value bucket, in memory, and a simulated cluster."""
