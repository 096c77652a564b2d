"""Nodes and whole trees on this machine: how they run, what lies where, what the demo shows."""
