"""A running centre: its node, controllers, spaces and backups."""
