"""A node's nats-server: its configuration, process, ports and administration."""
