"""Conformance vectors: what goes in, and what a program that follows the protocol makes of it."""
