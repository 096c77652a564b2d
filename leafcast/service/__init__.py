"""A node as a service of its machine: its unit, what the manager hears; is the host fit."""
