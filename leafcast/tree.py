"""A whole tree on this machine: real nats-servers, relays at every tier, simulated clusters."""
