"""Releases of Leafcast itself: what a publisher signs, and what a machine keeps of it."""
