"""The launcher: it runs a node, puts chosen releases beside it, and goes back if need be.

It is a program of its own, and imports nothing of what it launches: only `schemas.releases`, what
writes files whole, and what unpacks wheels. So it goes on whatever a release does.
"""
