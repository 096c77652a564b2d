"""What a node decides: events in, effects out.

Pure: no clock, no dice, no task, no socket. The daemon, the tests and the simulation drive the same
objects.
"""
