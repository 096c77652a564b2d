"""Nodes and whole trees on this machine: how they run, and what lies where."""
