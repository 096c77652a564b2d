"""How far a Rollout is let: what is decided of it. Pure: counts and time come as arguments."""
