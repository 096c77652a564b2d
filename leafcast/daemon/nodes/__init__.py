"""Nodes come and go: enrolment, keys, certificates."""
